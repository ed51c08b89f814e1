"""Carries out what people have ordered of a tree search, as a step of it like any other."""

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
from reflective_agents.tree_search.base import Child, own
from reflective_agents.tree_search.ending import why_solved
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.places import exact, standing, upwards
from reflective_agents.tree_search.progress import Progress
from reflective_agents.tree_search.report import does, shown
from reflective_agents.tree_search.steering import changes_in, impossible

_ORDER = TypeAdapter(Order)


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
        entry = _entry("rescore", change, changed)
        above = {key: entry["stats"][key] for key in upwards(node["id"]) if key in entry["stats"]}
        self.step.emit("judged", **shown(new), expansions=self.progress.expansions, does=does(new))
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
        return update | {name: new for name, new in (("messages", taken_back), ("raised", self.raised)) if new}


def _entry(kind: str, change: Change, changed: StatsView | None = None) -> LogEntry:
    figures: dict[str, list[float]] = {key: [stat["visits"], stat["total"]] for key, stat in (changed or {}).items()}
    return LogEntry(kind=kind, node=change.get("node"), added=[], stats=figures, calls=0, tokens=0)


def _read(given: object) -> Order | None:
    """Return an order as it was given, by whatever client; None if it is none."""
    try:
        return _ORDER.validate_python(given)
    except ValidationError:
        return None
