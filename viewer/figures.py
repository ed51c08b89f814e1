"""What a picture says in numbers, and of each node in a word."""

import math

from viewer.frames import Figures
from viewer.picture import Node, Picture


def figures(picture: Picture, frame: int | None = None) -> dict[str, Figures]:
    """The figures of all nodes that have any, at a frame counted from 0; None for the last one."""
    last = len(picture["frames"]) - 1 if frame is None else frame
    return {key: own for told in picture["frames"][: last + 1] for key, own in told["stats"].items()}


def value(own: Figures) -> float | None:
    """Q: the mean of the values seen at and below a node; None before the first."""
    return own["total"] / own["visits"] if own["visits"] else None


def uct(own: Figures, parent: Figures, weight: float) -> float:
    """Upper confidence bound: Q + w * sqrt(ln N(parent) / N). Infinite before the first visit."""
    mean = value(own)
    if mean is None:
        return math.inf
    return mean + weight * math.sqrt(math.log(max(parent["visits"], 1)) / own["visits"])


def pruned(picture: Picture) -> set[str]:
    """The nodes that were given up, without those below them."""
    return {key for told in picture["frames"] for key in told["pruned"]}


def marks(picture: Picture, key: str, given_up: set[str]) -> list[str]:
    """What is to be said of a node in a word each: solved, best (where the chosen path ends), pruned."""
    path = picture["path"]
    holds = {"solved": picture["nodes"][key]["solved"], "best": path[-1:] == [key], "pruned": key in given_up}
    return [mark for mark, held in holds.items() if held]


def says(picture: Picture, node: Node) -> str:
    """What a node says: its text, else what it does, else what it observes; of a root without any the question."""
    text = node["messages"][0]["content"] if node["messages"] else ""
    text = text or node["action"] or node["thought"] or node["observation"]
    return text or (picture["question"] if node["parent_id"] is None else "")


def children(picture: Picture) -> dict[str | None, list[Node]]:
    """The nodes by their parents; the root under None."""
    found: dict[str | None, list[Node]] = {}
    for node in picture["nodes"].values():
        found.setdefault(node["parent_id"], []).append(node)
    return found
