"""The report of a job of a tree search: an entry of the log in the state, and events."""

from collections.abc import Sequence
from textwrap import shorten

from langchain_core.messages import AIMessage

from reflective_agents.nodes.step import Step
from reflective_agents.state.families import TreeContext
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.tree import LogEntry, Stats, TreeNode, first_figures
from reflective_agents.tree_search.base import Job
from reflective_agents.tree_search.job_result import JobResult
from reflective_agents.tree_search.tree_paths import upwards

MAX_REASON = 200
"""Most characters of a refusal in the log."""
MAX_SUMMARY = 80
"""Most characters of a node's summary in an event."""


def log_entry(job: Job, result: JobResult, changed: Stats, pruned: Sequence[str]) -> LogEntry:
    """Return the entry of the log for a job whose results are in the tree.

    Args:
        job: The job.
        result: Its results.
        changed: The statistics that it has changed.
        pruned: The nodes that the algorithm has pruned.
    """
    added: dict[str, TreeNode] = {}
    if job["kind"] != "judge":
        for child in result.children:
            if child.node["id"] != job["node"]:
                added[child.node["id"]] = child.node
    stats: dict[str, list[float]] = {}
    for key, stat in changed.items():
        figures = [stat["visits"], stat["total"]]
        if key not in added or figures != first_figures(added[key]):
            stats[key] = figures
    entry = LogEntry(
        kind=job["kind"],
        node=job["node"] or None,
        added=list(added),
        stats=stats,
        calls=result.calls,
        tokens=result.tokens,
    )
    if result.merged:
        entry["merged"] = result.merged
    if result.stops and result.fruitless:
        entry["failed"] = True
        entry["why"] = shorten(str(result.stops[-1]), MAX_REASON)
    if arm := job.get("arm"):
        entry["arm"] = arm
    if job.get("narrowed"):
        entry["narrowed"] = True
    if result.refused:
        entry["refused"] = len(result.refused)
    if result.refused and not result.children:
        entry["why"] = shorten(result.refused[-1], MAX_REASON)
    if pruned:
        entry["pruned"] = list(pruned)
    return entry


def figures_above(entry: LogEntry, node: str) -> dict[str, list[float]]:
    """Return the figures of an entry of a node and of those above it, as far as they have changed."""
    stats = entry["stats"]
    return {key: stats[key] for key in upwards(node) if key in stats}


def emit_events(step: Step[TreeContext], job: Job, result: JobResult, entry: LogEntry, expansions: int) -> None:
    """Emit the events of a job: the nodes first, then the statistics above them, pruned nodes and lessons."""
    for child in result.children:
        event = "node" if child.node["id"] in entry["added"] else "judged"
        step.emit(event, **event_fields(child.node), expansions=expansions, does=summarize_node(child.node))
    if job["node"]:
        above = figures_above(entry, job["node"])
        spent = {"calls": result.calls, "tokens": result.tokens}
        step.emit("visited", node=job["node"], kind=job["kind"], stats=above, **spent)
    for node_id in entry.get("pruned", []):
        step.emit("pruned", node=node_id)
    for lesson in result.lessons:
        step.emit("reflected", node=lesson["node"], lesson=lesson["text"])


def event_fields(node: TreeNode) -> JsonObject:
    """Return the fields of a node that events carry."""
    fields = ("id", "parent_id", "depth", "kind", "score", "solved", "reward", "samples", "terms")
    return {key: entry for key, entry in node.items() if key in fields}


def summarize_node(node: TreeNode) -> str:
    """Return a node's action, its tool calls, or else its text, on one line of up to `MAX_SUMMARY` characters."""
    calls: list[str] = []
    texts: list[str] = []
    for message in node["messages"]:
        if isinstance(message, AIMessage):
            texts.append(message.text)
            for call in message.tool_calls:
                args = ", ".join(map(str, call["args"].values()))
                calls.append(f"{call['name']}({args})")
    words = node.get("action") or ", ".join(calls) or " ".join(texts)
    text = " ".join(words.split())
    return text if len(text) <= MAX_SUMMARY else f"{text[: MAX_SUMMARY - 1]}…"
