"""The step of a tree search that carries out the orders of people."""

# pyright: reportTypedDictNotRequiredAccess=false
# What a change must hold depends on its kind; `impossible` has checked it.

from collections.abc import Callable

from langchain_core.messages import RemoveMessage
from langgraph.graph import END
from pydantic import TypeAdapter, ValidationError

from reflective_agents.nodes.step import Step, Update
from reflective_agents.state.errors import Misuse
from reflective_agents.state.families import TreeContext
from reflective_agents.state.outcome import Outcome, accepts
from reflective_agents.state.policy import check_caller
from reflective_agents.state.tree import Change, LogEntry, Order, SearchState, StatsView, TreeNode
from reflective_agents.text.clean import clean_data
from reflective_agents.text.joined import joined
from reflective_agents.tree_search.base import Child, newly_pruned
from reflective_agents.tree_search.ending import why_solved
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.progress import Progress
from reflective_agents.tree_search.report import event_fields, figures_above, summarize_node
from reflective_agents.tree_search.steering import changes_in, impossible
from reflective_agents.tree_search.tree_paths import round_score, unpruned, upwards

_ORDER = TypeAdapter(Order)


class SteeringStep:
    """One super-step in which orders are carried out.

    Args:
        state: The state of the run.
        step: The step of the graph that steers.
        search: The tree search.
    """

    def __init__(self, state: SearchState, step: Step[TreeContext], search: TreeSearch) -> None:
        self.state, self.step, self.search = state, step, search
        self.progress = Progress(state)
        self.context = step.context
        self.raised = dict(state.get("raised") or {})
        self._made: list[str] = []

    def run(self) -> Update:
        """Carry out the changes that are possible, refuse the others with a reason, and return the update."""
        for stored in self.state.get("orders") or []:
            order = _read(stored)
            if order is None:
                self.step.emit("refused", why="this is not an order")
                continue
            is_current = changes_in({"log": self.state["log"]}) + len(self._made) == order["seen"]
            for change in order["changes"]:
                values = {"tree": self.progress.tree}
                outdated = "" if is_current else "somebody else has steered this thread meanwhile: look at it again"
                if why := outdated or impossible(values, change) or self._forbidden(change):
                    self._refuse(change, why)
                else:
                    self._carry_out(change)
        return self._update()

    def _forbidden(self, change: Change) -> str:
        """Return why a change may not raise limits; empty if it may."""
        try:
            context = self.context.raised(change.get("limits") or {})
            check_caller(context, context.defaults)
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
        pruned = newly_pruned(self.progress.stats, changed)
        self.progress.stats.update(changed)
        self.progress.tree[node] = {**self.progress.tree[node], "pruned": True}
        for key in pruned:
            self.step.emit("pruned", node=key)
        return {**_entry("prune", change, changed), "pruned": pruned}

    def _rescore(self, change: Change) -> LogEntry:
        node = self.progress.tree[change["node"]]
        before = node["score"]
        score = round_score(change["score"])
        solved = node["solved"] and accepts(True, score, self.step.context.min_score)
        new: TreeNode = {**node, "score": score, "solved": solved, "rescored": True}
        pruned = any(self.progress.tree[key].get("pruned") for key in upwards(node["id"]))
        child = Child(new, self.search.may_be_expanded(new) and not pruned)
        changed = self.search.algorithm.rescore(self.progress.stats, child, before)
        self.progress.stats.update(changed)
        self.progress.tree[node["id"]] = new
        entry = _entry("rescore", change, changed)
        above = figures_above(entry, node["id"])
        self.step.emit("judged", **event_fields(new), expansions=self.progress.expansions, does=summarize_node(new))
        self.step.emit("visited", node=node["id"], kind="rescore", stats=above, calls=0, tokens=0)
        return entry

    def _hint(self, change: Change) -> LogEntry:
        node = self.progress.tree[change["node"]]
        hints = joined([node.get("hint"), clean_data(change["text"]).strip()])
        self.progress.tree[node["id"]] = {**node, "hint": hints}
        return _entry("hint", change)

    def _more(self, change: Change) -> LogEntry:
        for name, increase in change["limits"].items():
            self.raised[name] = self.raised.get(name, 0) + increase
        self.context = self.context.raised(change["limits"])
        return _entry("more", change)

    def _update(self) -> Update:
        """Return the update: the tree search goes on, unless nothing was changed, or the best answer is solved and no
        more was asked for."""
        progress, state = self.progress, self.state
        if not self._made:
            ended = state["outcome"] or not progress.tree
            return {"orders": [], "log": progress.log, "then": END if ended else "expand"}
        best = progress.choose_best(unpruned(progress.tree), self.search.algorithm)
        outcome: Outcome | None = None
        if best and best["solved"] and "more" not in self._made:
            outcome = Outcome(status="solved", reason=why_solved(best))
        elif "stop" in self._made:
            outcome = Outcome(status="exhausted", reason="a person has stopped the search")
        update = progress.update() | {"orders": [], "answer": None, "outcome": outcome}
        for last in state["messages"][-1:]:  # there may be none: a client can remove all
            if last.type == "ai" and last.id:
                update["messages"] = [RemoveMessage(last.id)]
        if self.raised:
            update["raised"] = self.raised
        return update


def _entry(kind: str, change: Change, changed: StatsView | None = None) -> LogEntry:
    figures: dict[str, list[float]] = {key: [stat["visits"], stat["total"]] for key, stat in (changed or {}).items()}
    return LogEntry(kind=kind, node=change.get("node"), added=[], stats=figures, calls=0, tokens=0)


def _read(stored: object) -> Order | None:
    """Return the order that a client has stored; None if it is none."""
    try:
        return _ORDER.validate_python(stored)
    except ValidationError:
        return None
