"""What a search algorithm is: a stateless value that is asked what to expand next, and told what came of it.

    jobs, changes = ask(algorithm, stats, room=4)      # up to 4 jobs, to be carried out at once
    changes = tell(algorithm, stats, job, children)    # in any order, and twice without harm

The statistics go in and the changes of them come out; whoever asks merges them (`state.tree.merge_stats`). While a job
is in flight, each node from the root to its place carries a virtual loss, so that the next job goes elsewhere; `tell`
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
from reflective_agents.tree_search.places import ROOT, Rank, is_below, rank, upwards

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
    """The way to make the child, where the algorithm makes children one by one and chooses among several ways."""
    nodes: NotRequired[list[str]]
    """What is to be judged, `width` in number: `node` itself, or nodes below it that are compared."""
    narrowed: NotRequired[bool]
    """Whether `width` is less than the algorithm has asked for."""


class Child(NamedTuple):
    """A node that is new or was judged, whether it may be expanded, and the key of the world's state that it is in,
    where states with the same key have the same value."""

    node: TreeNode
    expandable: bool
    key: str = ""


class Algorithm(Protocol):
    """How a tree search chooses and what it learns. All methods are pure: they change nothing that they are given.

    Subclasses implement `choose` and `learn`; the other methods have defaults.
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
        below = [key for key in stats if is_below(key, node)]
        closed: Stats = {key: {**stats[key], "closed": True} for key in below}
        return {**closed, node: noting(closed[node], pruned=True)}

    def rescore(self, stats: StatsView, child: Child, before: float | None) -> Stats:
        """Return the statistics that change as a person sets the score of a node, which was `before`: all above see the
        difference, and a leaf that may be expanded now is open again."""
        node, gained = child.node["id"], (child.node["score"] or 0.0) - (before or 0.0)
        changed: Stats = {}
        for place in upwards(node):
            stat = stats[place]
            visits = stat["visits"] + int(before is None)
            changed[place] = {**stat, "visits": visits, "total": stat["total"] + gained}
        return reopened(changed, node) if child.expandable else changed

    def ended(self, stats: StatsView) -> tuple[Status, str] | None:
        """Return the outcome with its reason where the algorithm itself has decided the search."""
        return None

    def limit(self, stats: StatsView) -> Limit | None:
        """Return the limit of its own that the algorithm has reached."""
        return None

    @property
    def exhausted(self) -> str:
        """Why a search ends in which there is nothing left to choose."""
        return "no leaf is left that could be expanded"

    def ways(self) -> tuple[str, ...]:
        """Return the names of the models, or other ways to make a child, among which the algorithm chooses."""
        return ("",)

    def promise(self, node: NodeStats) -> float:
        """Return what a node without a score promises, 0..1."""
        return 0.0

    def rank(self, tree: TreeView, node: TreeNode) -> Rank:
        """Return what answers are sorted by, the best first."""
        return rank(node)


START = Job(node="", kind="start", first=0, width=1)


def ask(algorithm: Algorithm, stats: StatsView, room: int = 1) -> tuple[list[Job], Stats]:
    """Choose what to do next.

    Args:
        algorithm: The search algorithm.
        stats: Statistics of the tree; empty before the first job.
        room: How many jobs may be begun now.

    Returns:
        Up to `room` jobs, and the statistics that have changed: the virtual losses of these jobs.
    """
    if ROOT not in stats:
        return [START][:room], {}
    changed: Stats = {}
    seen = over(changed, stats)
    jobs: list[Job] = []
    while len(jobs) < room and (job := algorithm.choose(seen)):
        jobs.append(job)
        seen.update(_send(seen, job))
        seen.update(algorithm.begin(seen, job))
    return jobs, changed


def tell(algorithm: Algorithm, stats: StatsView, job: Job, children: Sequence[Child]) -> Stats:
    """Add what came of a job.

    Args:
        algorithm: The search algorithm.
        stats: Statistics of the tree.
        job: A job that `ask` has given, with the width that it was carried out with.
        children: All nodes that it has made or judged.

    Returns:
        The statistics that have changed; empty if this job is not in flight: it was told before, or withdrawn.
    """
    if not job["node"]:
        return {} if ROOT in stats else {child.node["id"]: algorithm.root(child) for child in children}
    if not _in_flight(stats, job):
        return {}
    changed = withdraw(stats, job)
    changed.update(algorithm.learn(over(changed, stats), job, children))
    return changed


def withdraw(stats: StatsView, job: Job) -> Stats:
    """Withdraw a job in flight whose result will never come, as after a fault, and remove its virtual losses."""
    if not _in_flight(stats, job):
        return {}
    node = job["node"]
    changed = {place: _without(stats[place], virtual=stats[place].get("virtual", 0) - 1) for place in upwards(node)}
    changed[node] = _without(
        changed[node], flight=[first for first in stats[node].get("flight", ()) if first != job["first"]]
    )
    return changed


def _in_flight(stats: StatsView, job: Job) -> bool:
    return job["node"] in stats and job["first"] in stats[job["node"]].get("flight", ())


def _send(stats: StatsView, job: Job) -> Stats:
    node = job["node"]
    changed: Stats = {place: {**stats[place], "virtual": stats[place].get("virtual", 0) + 1} for place in upwards(node)}
    changed[node]["flight"] = [*stats[node].get("flight", ()), job["first"]]
    return changed


def over(changes: Stats, stats: StatsView) -> MutableMapping[str, NodeStats]:
    """Lay changes over statistics: what is written goes to the changes."""
    return ChainMap(changes, cast(Stats, stats))


def own(node: NodeStats, name: str, default: T) -> T:
    """Return what the algorithm has noted at a node."""
    noted: T = node.get("own", {}).get(name, default)
    return noted


def noting(node: NodeStats, **entries: object) -> NodeStats:
    """Return a node's statistics with notes of the algorithm; None takes a note away."""
    notes = {**node.get("own", {}), **entries}
    return _without(node, own={key: note for key, note in notes.items() if note is not None})


def _without(stats: NodeStats, **amounts: int | list[int] | JsonObject) -> NodeStats:
    """Replace entries; those that have come to nothing are left out."""
    return cast(
        NodeStats, {key: amount for key, amount in {**stats, **amounts}.items() if amount or key not in amounts}
    )


def reopened(stats: Stats, node: str) -> Stats:
    """Return the statistics of a path with its end open again, where nothing was expanded there."""
    if stats[node]["children"] or not stats[node]["closed"]:
        return stats
    opened: Stats = {place: {**stat, "closed": False} for place, stat in stats.items()}
    return {**opened, node: noting(opened[node], pruned=None)}


def leaf(child: Child) -> NodeStats:
    """Return the statistics of a new node: its score is the first reward seen."""
    node, score = child.node, child.node["score"]
    judged = score is not None
    closed = not (child.expandable and (judged or node["kind"] == "root"))
    return NodeStats(visits=int(judged), total=score or 0.0, children=0, closed=closed)


def value(node: NodeStats) -> float:
    """Return the mean of the rewards seen at and below a node, in 0..1; 0 before the first."""
    return node["total"] / node["visits"] if node["visits"] else 0.0
