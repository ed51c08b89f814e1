"""What a picture says in numbers, and of each node in a word."""

import math
from collections.abc import Iterator, Mapping

from reflective_agents.viewer.frames import Figures
from reflective_agents.viewer.picture import Aggregate, Node, Picture


def figures(picture: Picture, frame: int | None = None) -> dict[str, Figures]:
    """Return the figures of all nodes that have any, at a frame counted from 0; None for the last frame."""
    seen: dict[str, Figures] = {}
    for each in picture["frames"][: None if frame is None else frame + 1]:
        seen |= each["stats"]
    return seen


def value(stats: Figures, aggregate: Aggregate = "mean") -> float | None:
    """Calculate Q: the mean or the highest of the values seen at and below a node; if unvisited the prior, or None."""
    if not stats["visits"]:
        return stats.get("prior")
    return stats.get("best") if aggregate == "max" else stats["total"] / stats["visits"]


def uct(stats: Figures, parent: Figures, weight: float, aggregate: Aggregate = "mean") -> float | None:
    """Calculate the UCT score of a node: Q + w * sqrt(ln N(parent) / N); a prior counts as a visit. None without Q."""
    q = value(stats, aggregate)
    if q is None:
        return None
    return q + weight * math.sqrt(math.log(max(parent["visits"], 1)) / max(stats["visits"], 1))


def numbers(picture: Picture, node: Node, seen: Mapping[str, Figures]) -> Iterator[str]:
    """Yield N, Q and UCT of a node, as far as they are known; UCT only where nodes are selected by it."""
    stats, parent = seen.get(node["id"]), seen.get(node["parent_id"] or "")
    if stats is None:
        return
    weight, aggregate = picture["weight"], picture["aggregate"]
    bound = None if parent is None or weight is None else uct(stats, parent, weight, aggregate)
    yield f"N={stats['visits']}"
    for name, figure in (("Q", value(stats, aggregate)), ("UCT", bound)):
        if figure is not None:
            yield f"{name}={figure:.2f}"


def pruned(picture: Picture) -> set[str]:
    """Return the nodes that were pruned, without those below them."""
    return set().union(*(frame["pruned"] for frame in picture["frames"]))


def marks(picture: Picture, key: str, given_up: set[str]) -> list[str]:
    """Mark a node, in one word each: solved, best (where the chosen path ends), pruned."""
    path = picture["path"]
    holds = {"solved": picture["nodes"][key]["solved"], "best": path[-1:] == [key], "pruned": key in given_up}
    return [mark for mark, held in holds.items() if held]


def says(picture: Picture, node: Node) -> str:
    """Return what a node says: its text, action, thought or observation; for a root without any, the question."""
    text = node["messages"][0]["content"] if node["messages"] else ""
    text = text or node["action"] or node["thought"] or node["observation"]
    return text or (picture["question"] if node["parent_id"] is None else "")


def children(picture: Picture) -> dict[str | None, list[Node]]:
    """Group the nodes by their parents, with the root under None."""
    below: dict[str | None, list[Node]] = {}
    for node in picture["nodes"].values():
        below.setdefault(node["parent_id"], []).append(node)
    return below
