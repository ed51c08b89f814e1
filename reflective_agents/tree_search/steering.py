"""Steering a tree search by hand: prune a node, set its score, give a hint, or raise a limit.

    values = graph.get_state(config).values
    graph.invoke(prune(values, "0.1", "0.2.0"), config)

Each function returns an order, as input for the thread. The search carries it out first, and then goes on, whether the
run was paused or has ended; the log has it like everything else. An order is refused if somebody else has steered the
thread since its `values` were read: read them again.
"""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from pydantic import TypeAdapter, ValidationError

from reflective_agents.state.errors import Misuse, problems_of
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.tree import Change, Order
from reflective_agents.tree_search.tree_paths import ROOT

Values = JsonMapping
"""The values of a thread, as `get_state` returns them."""
CHANGES = ("prune", "rescore", "hint", "more", "stop")
LONGEST_HINT = 4000
_CHANGE = TypeAdapter(Change)


def prune(values: Values, *nodes: str) -> Command[str]:
    """Return the order to prune nodes: they and all below are not expanded, and their answers do not count.

    Args:
        values: The values of the thread, as the person who orders has seen them.
        nodes: Their ids.

    Raises:
        Misuse: if there is no such node, or it is the root.
    """
    changes = [Change(kind="prune", node=node) for node in nodes]
    return order(values, *changes)


def rescore(values: Values, node: str, score: float) -> Command[str]:
    """Return the order to set the score of a node, 0..1; it counts as if the judge had given it.

    Raises:
        Misuse: if there is no such node, or the score is out of range.
    """
    return order(values, Change(kind="rescore", node=node, score=score))


def hint(values: Values, node: str, text: str) -> Command[str]:
    """Return the order to add a hint: all prompts at and below the node show it from now on.

    Raises:
        Misuse: if there is no such node, or the text is empty or too long.
    """
    return order(values, Change(kind="hint", node=node, text=text))


def more(values: Values, max_expansions: int = 0, **limits: float) -> Command[str]:
    """Return the order to go on with limits that are higher by so much, such as `more(values, 5, max_model_calls=40)`.

    Raises:
        Misuse: if a limit is not raised.
    """
    raised = {"max_expansions": max_expansions, **limits}
    increases = {name: increase for name, increase in raised.items() if increase}
    return order(values, Change(kind="more", limits=increases))


def stop(values: Values) -> Command[str]:
    """Return the order to answer now, with the best answer that there is.

    Raises:
        Misuse: if there is no tree yet.
    """
    return order(values, Change(kind="stop"))


def order(values: Values, *changes: Change) -> Command[str]:
    """Return the order to carry out changes, one after the other.

    Raises:
        Misuse: if one of them is impossible.
    """
    if not changes:
        raise Misuse("nothing is ordered")
    for change in changes:
        if why := _mistyped(change) or impossible(values, change):
            raise Misuse(why)
    new = Order(seen=changes_in(values), changes=[*changes])
    if waiting := len(values.get("orders") or []):
        new["instead"] = waiting
    return Command(update={"orders": [new]}, goto="expand")


def go_on() -> Command[str]:
    """Return what makes a thread go on without any order, also from a step before one was carried out."""
    return Command(update={"orders": []}, goto="expand")


async def earlier(graph: CompiledStateGraph[Any, Any], config: RunnableConfig, step: int) -> RunnableConfig:
    """Return the configuration of a thread as it was after so many steps of its log, for a fork:
    `graph.invoke(go_on(), await earlier(graph, config, 3))`, or with an order.

    Raises:
        Misuse: if the search did not stop there: with `parallel`, several steps are stored together.
    """
    async for state in graph.aget_state_history(config):
        if len(state.values.get("log") or []) == step and not state.values.get("outcome"):
            return state.config
    raise Misuse(f"this thread has no state after step {step} of its tree search")


def changes_in(values: Values) -> int:
    """Count the changes that people have made to a tree search."""
    return sum(entry["kind"] in CHANGES for entry in values.get("log") or [])


def _mistyped(change: Change) -> str:
    try:
        _CHANGE.validate_python(change, strict=True)
    except ValidationError as error:
        return "; ".join(problems_of(error, "a change"))
    return ""


def impossible(values: Values, change: Change) -> str:
    """Return why a change cannot be made; empty if it can."""
    kind = change.get("kind")
    node = str(change.get("node"))
    tree = values.get("tree") or {}
    if kind not in CHANGES:
        return f"{kind} is not a change of a tree search: there are {', '.join(CHANGES)}"
    if not tree:
        return "this thread has no tree yet"
    if kind == "stop":
        return ""
    if kind == "more":
        limits = change.get("limits") or {}
        for name in limits:
            if not name.startswith("max_"):
                return f"{name} is not a limit"
        is_raised = bool(limits) and all(increase > 0 for increase in limits.values())
        return "" if is_raised else "say by how much a limit is raised"
    if node not in tree:
        return f"there is no node {node}"
    if kind == "prune" and node == ROOT:
        return "the root cannot be given up: stop the run"
    if kind == "rescore" and not 0 <= change.get("score", -1) <= 1:
        return f"a score is a number from 0 to 1, not {change.get('score')}"
    if kind == "hint" and not 0 < len(change.get("text", "").strip()) <= LONGEST_HINT:
        return f"a hint is a text of 1 to {LONGEST_HINT} characters"
    return ""
