"""What a search algorithm is: it says what to expand next, and learns from the results. It holds no state.

    jobs, changes = ask(algorithm, stats, max_jobs=4)  # up to 4 jobs, to be carried out at once
    changes = tell(algorithm, stats, job, children)     # in any order, and twice without harm

Statistics go in and their changes come out; the caller merges them (`state.tree.merge_stats`). While a job is in
flight, each node from the root to the job's node carries a virtual loss, so that the next job goes elsewhere; `tell`
takes it back, and so does `withdraw` for a job that was given up.
"""

from abc import abstractmethod
from collections import ChainMap
from collections.abc import MutableMapping, Sequence
from typing import Literal, NamedTuple, NotRequired, Protocol, TypeVar, cast

from typing_extensions import TypedDict

from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.limits import Limit
from reflective_agents.state.outcome import Status
from reflective_agents.state.tree import NodeStats, Stats, StatsView, TreeNode, TreeView
from reflective_agents.tree_search.tree_paths import ROOT, Rank, is_below, rank, upwards

T = TypeVar("T")


class Job(TypedDict):
    """What to do next: make children of a node, or judge nodes.

    The children are `<node>.<first>` and those after it, at most `width`.
    """

    node: str
    """Empty for the job that makes the root."""
    kind: Literal["start", "expand", "simulate", "judge"]
    first: int
    width: int
    arm: NotRequired[str]
    """One of `Algorithm.arms`: who makes the child, where the algorithm has children made one by one."""
    nodes: NotRequired[list[str]]
    """The nodes to judge, `width` in number: `node` itself, or nodes below it that are compared."""
    narrowed: NotRequired[bool]
    """Whether `width` is less than the algorithm wanted."""


class Child(NamedTuple):
    """A node that is new or was judged."""

    node: TreeNode
    expandable: bool
    key: str = ""
    """The key of the state that the node is in: states with the same key have the same value. Empty if it has none."""


class Algorithm(Protocol):
    """How a tree search chooses and what it learns. All methods are pure: they leave their arguments unchanged.

    Subclasses implement `choose` and `learn`; the rest has defaults.
    """

    @abstractmethod
    def choose(self, stats: StatsView) -> Job | None:
        """Return the next job; None if there is none, or none before those in flight are done."""

    @abstractmethod
    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Return the statistics that change by what came of a job."""

    def begin(self, stats: StatsView, job: Job) -> Stats:
        """Return the statistics that change as a job begins, beside its virtual losses."""
        return {}

    def root(self, child: Child) -> NodeStats:
        """Return the statistics that the root begins with."""
        return leaf(child)

    def prune(self, stats: StatsView, node: str) -> Stats:
        """Return the statistics that change as a person gives a node up: nothing is expanded there or below."""
        closed: Stats = {key: {**stat, "closed": True} for key, stat in stats.items() if is_below(key, node)}
        return {**closed, node: with_extra(closed[node], pruned=True)}

    def rescore(self, stats: StatsView, child: Child, before: float | None) -> Stats:
        """Return the statistics that change as a person sets the score of a node, which was `before`: all above see the
        difference, and a leaf that may be expanded now is open again."""
        node = child.node["id"]
        gained = (child.node["score"] or 0.0) - (before or 0.0)
        changed: Stats = {}
        for key in upwards(node):
            stat = stats[key]
            visits = stat["visits"] + int(before is None)
            changed[key] = {**stat, "visits": visits, "total": stat["total"] + gained}
        return reopened(changed, node) if child.expandable else changed

    def ended(self, stats: StatsView) -> tuple[Status, str] | None:
        """Return the outcome with its reason where the algorithm itself has decided the search."""
        return None

    def limit(self, stats: StatsView) -> Limit | None:
        """Return the limit that ends the search, if it is one of the algorithm's settings, such as `max_rollouts`."""
        return None

    @property
    def exhausted(self) -> str:
        """Why a search ends in which there is nothing left to choose."""
        return "no leaf is left that could be expanded"

    arms: tuple[str, ...] = ("",)
    """The names of the models, or of other ways to make a child, among which the algorithm chooses."""

    def promise(self, node: NodeStats) -> float:
        """Return the expected score of a node that has none yet, 0..1."""
        return 0.0

    def rank(self, tree: TreeView, node: TreeNode) -> Rank:
        """Return what answers are sorted by, the best first."""
        return rank(node)


START = Job(node="", kind="start", first=0, width=1)


def ask(algorithm: Algorithm, stats: StatsView, max_jobs: int = 1) -> tuple[list[Job], Stats]:
    """Choose what to do next.

    Args:
        algorithm: The search algorithm.
        stats: Statistics of the tree; empty before the first job.
        max_jobs: Most jobs to begin now.

    Returns:
        The jobs, and the statistics that have changed: the virtual losses of these jobs.
    """
    if ROOT not in stats:
        return [START][:max_jobs], {}
    changed: Stats = {}
    current = overlay(changed, stats)
    jobs: list[Job] = []
    while len(jobs) < max_jobs and (job := algorithm.choose(current)):
        jobs.append(job)
        current.update(_with_virtual_losses(current, job))
        current.update(algorithm.begin(current, job))
    return jobs, changed


def tell(algorithm: Algorithm, stats: StatsView, job: Job, children: Sequence[Child]) -> Stats:
    """Add the results of a job.

    Args:
        algorithm: The search algorithm.
        stats: Statistics of the tree.
        job: A job from `ask`, with the width that it was carried out with.
        children: All nodes that it has made or judged.

    Returns:
        The statistics that have changed; empty if the job is not in flight: it is finished, or was withdrawn.
    """
    if not job["node"]:  # the job that makes the root
        return {} if ROOT in stats else {child.node["id"]: algorithm.root(child) for child in children}
    if not _in_flight(stats, job):
        return {}
    changed = withdraw(stats, job)
    changed.update(algorithm.learn(overlay(changed, stats), job, children))
    return changed


def withdraw(stats: StatsView, job: Job) -> Stats:
    """Withdraw a job in flight whose result will never come, as after a fault, and remove its virtual losses."""
    if not _in_flight(stats, job):
        return {}
    node = job["node"]
    changed: Stats = {}
    for key in upwards(node):
        changed[key] = _replaced(stats[key], virtual=stats[key].get("virtual", 0) - 1)
    flight = [first for first in stats[node].get("flight", ()) if first != job["first"]]
    return {**changed, node: _replaced(changed[node], flight=flight)}


def _in_flight(stats: StatsView, job: Job) -> bool:
    return job["node"] in stats and job["first"] in stats[job["node"]].get("flight", ())


def _with_virtual_losses(stats: StatsView, job: Job) -> Stats:
    node = job["node"]
    changed: Stats = {}
    for key in upwards(node):
        changed[key] = {**stats[key], "virtual": stats[key].get("virtual", 0) + 1}
    changed[node]["flight"] = [*stats[node].get("flight", ()), job["first"]]
    return changed


def overlay(changes: Stats, stats: StatsView) -> MutableMapping[str, NodeStats]:
    """Return a view of statistics with changes laid over them; what is written to it goes to `changes`."""
    return ChainMap(changes, cast(Stats, stats))


def get_extra(node: NodeStats, name: str, default: T) -> T:
    """Return an entry that the algorithm has added to a node's statistics."""
    extra: T = node.get("own", {}).get(name, default)
    return extra


def is_pruned(node: NodeStats) -> bool:
    """Return whether a node was given up, by the algorithm or by a person."""
    return get_extra(node, "pruned", False)


def newly_pruned(stats: StatsView, changed: Stats) -> list[str]:
    """Return the nodes that changes of the statistics prune."""
    new: list[str] = []
    for key, node in changed.items():
        was_pruned = key in stats and is_pruned(stats[key])
        if is_pruned(node) and not was_pruned:
            new.append(key)
    return new


def scores_of(children: Sequence[Child]) -> list[float]:
    """Return the scores of children that have one."""
    scores = [child.node["score"] for child in children]
    return [score for score in scores if score is not None]


def with_extra(node: NodeStats, **entries: object) -> NodeStats:
    """Return a node's statistics with entries that the algorithm alone needs; None removes one."""
    extra = {**node.get("own", {}), **entries}
    own = {key: entry for key, entry in extra.items() if entry is not None}
    return _replaced(node, own=own)


def _replaced(node: NodeStats, **entries: int | list[int] | JsonObject) -> NodeStats:
    """Replace entries; those that are 0 or empty are left out."""
    new = {**node, **entries}
    for key, entry in entries.items():
        if not entry:
            del new[key]
    return cast(NodeStats, new)


def reopened(stats: Stats, node: str) -> Stats:
    """Return the statistics of a path with its end open again, where nothing was expanded there."""
    if stats[node]["children"] or not stats[node]["closed"]:
        return stats
    opened: Stats = {key: {**stat, "closed": False} for key, stat in stats.items()}
    return {**opened, node: with_extra(opened[node], pruned=None)}


def leaf(child: Child) -> NodeStats:
    """Return the statistics of a new node: its score is the first reward seen.

    One that could not be judged is closed, but for a root that is no answer: nothing competes with it.
    """
    node, score = child.node, child.node["score"]
    judged = score is not None
    is_bare_root = node["id"] == ROOT and node["kind"] != "answer"
    closed = not child.expandable or not (judged or is_bare_root)
    return NodeStats(visits=int(judged), total=score or 0.0, children=0, closed=closed)


def value(node: NodeStats) -> float:
    """Return the mean of the rewards seen at and below a node, in 0..1; 0 before the first."""
    return node["total"] / node["visits"] if node["visits"] else 0.0
