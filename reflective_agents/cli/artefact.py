"""What lies in the state of a run, as plain data: for JSON, and for the display of a resumed run."""

from collections.abc import Iterator

from reflective_agents.nodes.step import COST
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.tree_search.report import summarize_node


def replay(values: JsonMapping) -> Iterator[JsonObject]:
    """Replay the progress events that led to a state, as far as it still holds them, for a resumed run."""
    yield from _tree(values)
    yield from _drafts(values)
    for number, act in enumerate(values.get("steps") or [], 1):
        yield {"event": "action", "round": number, **_part(act, "action", "observation", "valid")}
    for number, sample in enumerate(values.get("samples") or [], 1):
        yield {"event": "sample", "round": number, "answer": sample["answer"]}
    for trial in values.get("trials") or []:
        entry = _part(trial, "answer", "reward", "score", "solved", "reflection")
        yield {"event": "trial", "round": trial["trial"], **entry}
    for goal in values.get("subgoals") or []:
        yield {"event": "subgoal", **_part(goal, "number", "goal", "needs", "status", "answer", "reason")}
    yield from _rounds(values)
    for memory in values.get("memories") or []:
        shown = ("number", "kind", "text", "score", "recency", "importance", "relevance", "cited")
        yield {"event": "retrieved", **_part(memory, *shown)}
    for moment in values.get("day") or []:
        yield {"event": "act", **_part(moment, "time", "agent", "place", "doing")}
    if usage := values.get("usage"):
        yield {"event": "begin", **{key: usage[key] for key in COST if key in usage}}


def _tree(values: JsonMapping) -> Iterator[JsonObject]:
    for node in (values.get("tree") or {}).values():
        entry = _part(node, "id", "parent_id", "depth", "kind", "score", "solved")
        yield {"event": "node", **entry, "expansions": values["expansions"], "does": summarize_node(node)}
    for node_id, stat in (values.get("stats") or {}).items():
        if stat["children"]:
            yield {"event": "visited", "node": node_id, "stats": {node_id: [stat["visits"], stat["total"]]}}
        if stat.get("own", {}).get("pruned"):
            yield {"event": "pruned", "node": node_id}


def _drafts(values: JsonMapping) -> Iterator[JsonObject]:
    for draft in values.get("drafts") or []:
        yield {"event": "draft", "round": draft["round"], "words": len(draft["text"].split())}
        if draft["score"] is not None:
            yield {"event": "critique", **_part(draft, "round", "score", "accepted", "critique")}
    for answer in values.get("answers") or []:
        revision: JsonObject = {"event": "revision", **_part(answer, "round", "missing", "queries")}
        if answer["round"]:
            revision["references"] = len(answer["references"])
        yield revision


def _rounds(values: JsonMapping) -> Iterator[JsonObject]:
    for round in values.get("rounds") or []:
        members: list[str] = []
        reports: list[str] = []
        for report in round["reports"]:
            members.append(report["name"])
            reports.append(report["answer"])
        entry = _part(round, "round", "critique", "best", "score")
        yield {"event": "reports", **entry, "members": members, "reports": reports}


def _part(record: JsonMapping, *keys: str) -> JsonObject:
    return {key: record[key] for key in keys}
