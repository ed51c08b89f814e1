"""The history of a search: one frame for each thing that it did, with the figures that changed."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.tree import LogEntry, TreeView


class Figures(TypedDict):
    """What the search knows of a node: how many values it has seen there and below, their sum, and whether nothing
    below can be expanded any more.

    Where the search keeps them, also `best`, the highest of these values, and `prior`, which stands for them before the
    first.
    """

    visits: int
    total: float
    closed: bool
    best: NotRequired[float]
    prior: NotRequired[float]


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


def frames(values: JsonMapping) -> list[Frame]:
    """Rebuild the history of a run, frame by frame.

    Args:
        values: The state of the run, with `tree` and `stats`, and with `log` and `lessons` if it has kept them. Without
            a log there is one frame, the last.
    """
    log: list[LogEntry] = values.get("log") or []
    tree: TreeView = values["tree"]
    final = {key: {**stat, **stat.get("own", {})} for key, stat in values["stats"].items()}
    if not log:
        entry = LogEntry(kind="end", node=None, added=list(tree), stats={}, calls=0, tokens=0)
        figures_at_end = {key: _final(own) for key, own in final.items()}
        return [_frame(0, entry, figures_at_end, "")]
    changes = [{**_first(tree, entry["added"]), **entry["stats"]} for entry in log]
    last: dict[str, int] = {}
    for number, changed in enumerate(changes):
        last |= dict.fromkeys(changed, number)
    lessons = {lesson["node"]: lesson["text"] for lesson in values.get("lessons") or []}
    made: list[Frame] = []
    seen: dict[str, Figures] = {}
    for number, (entry, changed) in enumerate(zip(log, changes, strict=True)):
        stats: dict[str, Figures] = {}
        for key, own in changed.items():
            ended = final.get(key, {})
            figures = _figures(own, seen.get(key), ended)
            if entry["kind"] == "rescore" and key == entry["node"] and "best" in figures:
                figures["best"] = entry.get("change", {}).get("score", figures["best"])
            # A node closes when something at or below it is told, and then for good: with its last change.
            figures["closed"] = last[key] == number and ended.get("closed", False)
            stats[key] = figures
        seen |= stats
        learned = [lessons[key] for key in entry["added"] if key in lessons]
        made.append(_frame(number, entry, stats, "\n".join(learned)))
    return made


def _first(tree: TreeView, added: list[str]) -> dict[str, list[float]]:
    """Return the first statistics of new nodes: their own score, unless the log says otherwise."""
    first: dict[str, list[float]] = {}
    for key in added:
        if key in tree:
            first[key] = [1, tree[key].get("score") or 0.0]
    return first


def _final(stats: JsonMapping) -> Figures:
    final = Figures(visits=stats["visits"], total=stats["total"], closed=stats["closed"])
    if "best" in stats:
        final["best"] = stats["best"]
    if "prior" in stats:
        final["prior"] = stats["prior"]
    return final


def _figures(own: Sequence[float], before: Figures | None, final: JsonMapping) -> Figures:
    """Return the figures of a node after a step, given those before it and the final ones."""
    made = Figures(visits=int(own[0]), total=own[1], closed=False)
    if "prior" in final:
        made["prior"] = final["prior"]
    if "best" in final and made["visits"]:
        # An algorithm that keeps it passes up one value at a time, of 0 or more: what the sum has grown by.
        total, best = (before["total"], before.get("best", 0.0)) if before else (0.0, 0.0)
        made["best"] = max(best, made["total"] - total)
    return made


def _frame(number: int, entry: LogEntry, stats: dict[str, Figures], reflection: str) -> Frame:
    return Frame(
        number=number,
        event=entry["kind"],
        node=entry["node"] or next(iter(entry["added"]), None),
        added=entry["added"],
        merged=entry.get("merged", 0),
        pruned=entry.get("pruned", []),
        reflection=reflection,
        stats=stats,
        calls=entry["calls"],
        tokens=entry["tokens"],
    )
