"""Steering a tree search by hand: give a node up, set its score, hint at something, or ask for more.

    values = graph.get_state(config).values
    graph.invoke(prune(values, "0.1", "0.2.0"), config)

`prune`, `rescore`, `hint` and `more` return what a thread is given: an order, which the search carries out before
anything else, and then goes on. It works on a run that was paused and on one that has ended, and is written to the log
like everything that a search does. Who has not seen what another person has ordered meanwhile is refused: look again.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from pydantic import TypeAdapter, ValidationError

from reflective_agents.nodes.step import Step, Update
from reflective_agents.state.errors import Misuse
from reflective_agents.state.families import TreeContext
from reflective_agents.state.outcome import Outcome, accepts
from reflective_agents.state.policy import check_caller
from reflective_agents.state.tree import Change, LogEntry, Order, SearchState, Stats, StatsView, TreeNode
from reflective_agents.text.clean import clean_data
from reflective_agents.tree_search.base import Child, own
from reflective_agents.tree_search.ending import why_solved
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.places import ROOT, exact, standing, upwards
from reflective_agents.tree_search.progress import Progress
from reflective_agents.tree_search.report import does, shown

Values = Mapping[str, Any]
"""The values of a thread, as `get_state` returns them."""
CHANGES = ("prune", "rescore", "hint", "more", "stop")
LONGEST_HINT = 4000
_ORDER = TypeAdapter(Order)


def prune(values: Values, *nodes: str) -> Command[str]:
    """Return the order to give nodes up: they and all below are not expanded, and not answered with.

    Args:
        values: The values of the thread, as whoever orders it has seen them.
        nodes: Their ids.

    Raises:
        Misuse: if there is no such node, or it is the root.
    """
    return order(values, *(Change(kind="prune", node=node) for node in nodes))


def rescore(values: Values, node: str, score: float) -> Command[str]:
    """Return the order to set the score of a node, 0..1; it counts as if the judge had given it.

    Raises:
        Misuse: if there is no such node, or the score is out of range.
    """
    return order(values, Change(kind="rescore", node=node, score=score))


def hint(values: Values, node: str, text: str) -> Command[str]:
    """Return the order to hint at something: all prompts at and below a node show it from now on.

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
    return order(values, Change(kind="more", limits={name: by for name, by in raised.items() if by}))


def stop(values: Values) -> Command[str]:
    """Return the order to answer now, with the best answer that there is.

    Raises:
        Misuse: if there is no tree yet.
    """
    return order(values, Change(kind="stop"))


def order(values: Values, *changes: Change) -> Command[str]:
    """Return the order to carry out changes, one after the other.

    Raises:
        Misuse: if one of them cannot be.
    """
    if not changes:
        raise Misuse("nothing is ordered")
    for change in changes:
        if why := impossible(values, change):
            raise Misuse(why)
    made = Order(seen=changes_in(values), changes=[*changes])
    if waiting := len(values.get("orders") or []):
        made["instead"] = waiting
    return Command(update={"orders": [made]}, goto="expand")


def go_on() -> Command[str]:
    """Return what makes a thread go on without any order, also from a step before one was carried out."""
    return Command(update={"orders": []}, goto="expand")


async def earlier(graph: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig, step: int) -> RunnableConfig:
    """Return the configuration of a thread as it was after so many steps of its log, for a fork:
    `graph.invoke(go_on(), await earlier(graph, config, 3))`, or with an order.

    Raises:
        Misuse: if the search did not stop there: with `parallel`, several steps are stored together.
    """
    history: AsyncIterator[Any] = graph.aget_state_history(config)
    async for state in history:
        if len(state.values.get("log") or []) == step and not state.values.get("outcome"):
            found: RunnableConfig = state.config
            return found
    raise Misuse(f"this thread has no state after step {step} of its tree search")


def changes_in(values: Values) -> int:
    """Count the changes that people have made to a tree search."""
    return sum(entry["kind"] in CHANGES for entry in values.get("log") or [])


def impossible(values: Values, change: Change) -> str:
    """Return why a change cannot be made; empty if it can."""
    kind, node, tree = change.get("kind"), str(change.get("node")), values.get("tree") or {}
    if kind not in CHANGES:
        return f"{kind} is not a change of a tree search: there are {', '.join(CHANGES)}"
    if not tree:
        return "this thread has no tree yet"
    if kind == "stop":
        return ""
    if kind == "more":
        limits = change.get("limits") or {}
        if others := [name for name in limits if not name.startswith("max_")]:
            return f"{others[0]} is not a limit"
        return "" if limits and all(by > 0 for by in limits.values()) else "say by how much a limit is raised"
    if node not in tree:
        return f"there is no node {node}"
    if kind == "prune" and node == ROOT:
        return "the root cannot be given up: stop the run"
    if kind == "rescore" and not 0 <= change.get("score", -1) <= 1:
        return f"a score is a number from 0 to 1, not {change.get('score')}"
    if kind == "hint" and not 0 < len(change.get("text", "").strip()) <= LONGEST_HINT:
        return f"a hint is a text of 1 to {LONGEST_HINT} characters"
    return ""


class Steering:
    """One super-step in which orders are carried out.

    Args:
        state: The state of the run.
        step: The node that steers.
        search: What is searched with.
    """

    def __init__(self, state: SearchState, step: Step[TreeContext], search: TreeSearch) -> None:
        self.state, self.step, self.search = state, step, search
        self.progress = Progress(state)
        self.raised = dict(state.get("raised") or {})
        self._made: list[str] = []

    def run(self) -> Update:
        """Carry out what can be, say of the rest why not, and return the update of the state."""
        for given in self.state.get("orders") or []:
            order = _read(given)
            if order is None:
                self.step.emit("refused", why="this is not an order")
                continue
            seen = changes_in({"log": self.state["log"]}) + len(self._made) == order["seen"]
            for change in order["changes"]:
                values = {"tree": self.progress.tree}
                late = "" if seen else "somebody else has steered this thread meanwhile: look at it again"
                if why := late or impossible(values, change) or self._forbidden(change):
                    self._refuse(change, why)
                else:
                    self._carry_out(change)
        return self._update()

    def _forbidden(self, change: Change) -> str:
        """Return why limits cannot be raised."""
        try:
            context = self.step.context.raised(change.get("limits") or {})
            check_caller(context, type(context).ambient)
        except Misuse as error:
            return str(error)
        return ""

    def _carry_out(self, change: Change) -> None:
        kinds: dict[str, Callable[[Change], LogEntry]] = {
            "prune": self._prune,
            "rescore": self._rescore,
            "hint": self._hint,
            "more": self._more,
            "stop": lambda change: _entry("stop", change),
        }
        self.step.emit("steered", **change)
        self.progress.log.append({**kinds[change["kind"]](change), "change": change})
        self._made.append(change["kind"])

    def _refuse(self, change: Change, why: str) -> None:
        self.progress.log.append({**_entry("refused", change), "change": change, "said": why})
        self.step.emit("refused", **change, why=why)

    def _prune(self, change: Change) -> LogEntry:
        node = change["node"]
        changed = self.search.algorithm.prune(self.progress.stats, node)
        before = {key for key in changed if own(self.progress.stats[key], "pruned", False)}
        pruned = [key for key in changed if own(changed[key], "pruned", False) and key not in before]
        self.progress.stats.update(changed)
        self.progress.tree[node] = {**self.progress.tree[node], "pruned": True}
        for key in pruned:
            self.step.emit("pruned", node=key)
        return {**_entry("prune", change, changed), "pruned": pruned}

    def _rescore(self, change: Change) -> LogEntry:
        node = self.progress.tree[change["node"]]
        score, before = exact(change["score"]), node["score"]
        solved = node["solved"] and accepts(True, score, self.step.context.min_score)
        new: TreeNode = {**node, "score": score, "solved": solved, "rescored": True}
        given_up = any(self.progress.tree[place].get("pruned") for place in upwards(node["id"]))
        child = Child(new, self.search.may_be_expanded(new) and not given_up)
        changed = self.search.algorithm.rescore(self.progress.stats, child, before)
        self.progress.stats.update(changed)
        self.progress.tree[node["id"]] = new
        return self._told(change, new, changed)

    def _told(self, change: Change, node: TreeNode, changed: Stats) -> LogEntry:
        entry = _entry("rescore", change, changed)
        self.step.emit("judged", **shown(node), expansions=self.progress.expansions, does=does(node))
        above = {key: entry["stats"][key] for key in upwards(node["id"]) if key in entry["stats"]}
        self.step.emit("visited", node=node["id"], kind="rescore", stats=above, calls=0, tokens=0)
        return entry

    def _hint(self, change: Change) -> LogEntry:
        node = self.progress.tree[change["node"]]
        said = "\n".join(filter(None, [node.get("hint"), clean_data(change["text"]).strip()]))
        self.progress.tree[node["id"]] = {**node, "hint": said}
        return _entry("hint", change)

    def _more(self, change: Change) -> LogEntry:
        for name, by in change["limits"].items():
            self.raised[name] = self.raised.get(name, 0) + by
        return _entry("more", change)

    def _update(self) -> Update:
        """Return the update: the tree search goes on, unless nothing was changed, or the best answer is solved and no
        more was asked for."""
        progress, state = self.progress, self.state
        if not self._made:
            ended = state["outcome"] or not progress.tree
            return {"orders": [], "log": progress.log, "then": END if ended else "expand"}
        answers = [node for node in standing(progress.tree) if node["kind"] == "answer"]
        best = min(answers, key=lambda node: self.search.algorithm.rank(progress.tree, node), default=None)
        progress.best = best["id"] if best else None
        outcome: Outcome | None = None
        if best and best["solved"] and "more" not in self._made:
            outcome = Outcome(status="solved", reason=why_solved(best))
        elif "stop" in self._made:
            outcome = Outcome(status="exhausted", reason="a person has stopped the search")
        said = state["messages"][-1:]
        taken_back = [RemoveMessage(message.id) for message in said if message.type == "ai" and message.id]
        update = progress.update() | {"orders": [], "answer": None, "outcome": outcome}
        return (
            update | ({"messages": taken_back} if taken_back else {}) | ({"raised": self.raised} if self.raised else {})
        )


def _entry(kind: str, change: Change, changed: StatsView | None = None) -> LogEntry:
    figures: dict[str, list[float]] = {key: [stat["visits"], stat["total"]] for key, stat in (changed or {}).items()}
    return LogEntry(kind=kind, node=change.get("node"), added=[], stats=figures, calls=0, tokens=0)


def _read(given: object) -> Order | None:
    """Return an order as it was given, by whatever client; None if it is none."""
    try:
        return _ORDER.validate_python(given)
    except ValidationError:
        return None
