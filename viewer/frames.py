"""The history of a search: one frame for each thing that it did, with the figures that changed."""

from collections.abc import Mapping
from typing import Any, TypedDict


class Figures(TypedDict):
    """What the search knows of a node: how many values it has seen there and below, their sum, and whether nothing
    below can be expanded any more."""

    visits: int
    total: float
    closed: bool


class Frame(TypedDict):
    """One step of a search.

    `event` names what happened (`start`, `expand`, `simulate`, `judge`, ...) and `node` where. `added` are the nodes
    that were new, `pruned` those that were given up, `merged` counts the candidates that were the same as others.
    `stats` holds the figures that changed: the figures at any moment are those of all frames up to it, the later over
    the earlier. `calls` and `tokens` are what this step alone has cost.
    """

    number: int
    event: str
    node: str | None
    added: list[str]
    merged: int
    pruned: list[str]
    reflection: str
    stats: dict[str, Figures]
    calls: int
    tokens: int


def frames(values: Mapping[str, Any]) -> list[Frame]:
    """The history of a run.

    Args:
        values: The state of the run, with `tree` and `stats`, and with `log` and `lessons` if it has kept them. Without
            a log there is one frame, the last.
    """
    log = values.get("log") or []
    if not log:
        final = {key: _figures([own["visits"], own["total"]], own["closed"]) for key, own in values["stats"].items()}
        return [
            _frame(0, {"kind": "end", "node": None, "added": list(values["tree"]), "calls": 0, "tokens": 0}, final, "")
        ]
    tree = values["tree"]
    log = [{**told, "stats": {**_first(tree, told["added"]), **told["stats"]}} for told in log]
    last = {key: place for place, told in enumerate(log) for key in told["stats"]}
    closed = {key for key, own in values["stats"].items() if own["closed"]}
    lessons = {lesson["node"]: lesson["text"] for lesson in values.get("lessons") or []}
    made = []
    for place, told in enumerate(log):
        # A node closes when something at or below it is told, and then for good: with the last change of its figures.
        stats = {key: _figures(own, key in closed and last[key] == place) for key, own in told["stats"].items()}
        learned = [lessons[key] for key in told["added"] if key in lessons]
        made.append(_frame(place, told, stats, "\n".join(learned)))
    return made


def _first(tree: Mapping[str, Any], added: list[str]) -> dict[str, list[float]]:
    """New nodes have seen their own score, unless the log says otherwise."""
    return {key: [1, tree[key].get("score") or 0.0] for key in added if key in tree}


def _figures(own: list[Any], closed: bool) -> Figures:
    return {"visits": own[0], "total": own[1], "closed": closed}


def _frame(number: int, told: Mapping[str, Any], stats: dict[str, Figures], reflection: str) -> Frame:
    return Frame(
        number=number,
        event=told["kind"],
        node=told["node"] or next(iter(told["added"]), None),
        added=told["added"],
        merged=told.get("merged", 0),
        pruned=told.get("pruned", []),
        reflection=reflection,
        stats=stats,
        calls=told["calls"],
        tokens=told["tokens"],
    )
