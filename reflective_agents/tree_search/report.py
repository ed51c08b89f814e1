"""What a tree search tells of a job: an entry of the log for the state, and events for who watches."""

from collections.abc import Sequence
from textwrap import shorten

from langchain_core.messages import AIMessage

from reflective_agents.nodes.step import Step
from reflective_agents.state.families import TreeContext
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.tree import LogEntry, Stats, TreeNode, first_figures
from reflective_agents.tree_search.base import Job
from reflective_agents.tree_search.job import JobResult
from reflective_agents.tree_search.places import upwards

WHY = 200
"""Characters of a refusal that the log keeps."""
DOES = 80
"""Characters of an event that say what a node does."""


def log_entry(job: Job, result: JobResult, changed: Stats, pruned: Sequence[str]) -> LogEntry:
    """Return the entry of the log for a job that was taken in.

    Args:
        job: The job.
        result: What came of it.
        changed: The statistics that it has changed.
        pruned: The nodes that the algorithm has given up.
    """
    added = {child.node["id"]: child.node for child in result.children if _is_new(child.node, job)}
    figures = {key: [stat["visits"], stat["total"]] for key, stat in changed.items()}
    entry = LogEntry(
        kind=job["kind"],
        node=job["node"] or None,
        added=list(added),
        stats={key: seen for key, seen in figures.items() if key not in added or seen != first_figures(added[key])},
        calls=result.calls,
        tokens=result.tokens,
    )
    if result.merged:
        entry["merged"] = result.merged
    if result.stops and result.fruitless:
        entry["failed"] = True
    if arm := job.get("arm"):
        entry["arm"] = arm
    if job.get("narrowed"):
        entry["narrowed"] = True
    if result.refused:
        entry["refused"] = len(result.refused)
    if result.refused and not result.children:
        entry["why"] = shorten(result.refused[-1], WHY)
    if pruned:
        entry["pruned"] = list(pruned)
    return entry


def emit_events(step: Step[TreeContext], job: Job, result: JobResult, entry: LogEntry, expansions: int) -> None:
    """Tell the events of a job: the nodes first, then what has changed above them."""
    for child in result.children:
        event = "node" if child.node["id"] in entry["added"] else "judged"
        step.emit(event, **shown(child.node), expansions=expansions, does=does(child.node))
    if job["node"]:
        above = {key: entry["stats"][key] for key in upwards(job["node"]) if key in entry["stats"]}
        spent = {"calls": result.calls, "tokens": result.tokens}
        step.emit("visited", node=job["node"], kind=job["kind"], stats=above, **spent)
    for node_id in entry.get("pruned", []):
        step.emit("pruned", node=node_id)
    for lesson in result.lessons:
        step.emit("reflected", node=lesson["node"], lesson=lesson["text"])


def _is_new(node: TreeNode, job: Job) -> bool:
    return job["kind"] != "judge" and node["id"] != job["node"]


def shown(node: TreeNode) -> JsonObject:
    """Return the fields of a node that events carry."""
    fields = ("id", "parent_id", "depth", "kind", "score", "solved", "reward", "samples", "terms")
    return {key: entry for key, entry in node.items() if key in fields}


def does(node: TreeNode) -> str:
    """Say in a few words what a node does: its action, the tools that it calls, or else its text."""
    said = [message for message in node["messages"] if isinstance(message, AIMessage)]
    calls = [f"{call['name']}({', '.join(map(str, call['args'].values()))})" for one in said for call in one.tool_calls]
    words = " ".join((node.get("action") or ", ".join(calls) or " ".join(message.text for message in said)).split())
    return words if len(words) <= DOES else f"{words[: DOES - 1]}…"
