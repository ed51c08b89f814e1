"""What a search algorithm is: a stateless value that is asked what to expand next, and told what came of it.

    jobs, changes = ask(algorithm, stats, room=4)      # up to 4 jobs, to be carried out at once
    changes = tell(algorithm, stats, job, children)    # in any order, and twice without harm

The statistics go in and the changes of them come out; whoever asks merges them (`state.tree.merge_stats`). While a job
is in flight, each node from the root to its place carries a virtual loss, so that the next job goes elsewhere; `tell`
takes it back, and so does `withdraw` for a job that was given up.
"""

from collections import ChainMap
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, NotRequired, Protocol

from typing_extensions import TypedDict

from state.tree import NodeStats, Stats, StatsView, Tree, TreeNode

ROOT = "0"
EXACT = 2**30
"""Scores are rounded to multiples of 1/EXACT, so that their sums are exact and the order of addition does not matter.
"""


class Job(TypedDict):
    """What is to be done next: make children of a node, or judge it.

    `node` is None for the job that makes the root. The children are `<node>.<first>` and those after it, at most
    `width`. `arm` names the way to make them, where the algorithm chooses among several.
    """

    node: str | None
    kind: Literal["start", "expand", "simulate", "judge"]
    first: int
    width: int
    arm: NotRequired[str]
    nodes: NotRequired[list[str]]
    """What is to be judged, `width` in number: `node` itself, or nodes below it that are compared."""
    narrowed: NotRequired[bool]
    """Whether `width` is less than the algorithm has asked for."""


class Child(NamedTuple):
    """A node that is new or was judged, whether it may be expanded, and the state of the world that it is in, if that
    is all that it is worth."""

    node: TreeNode
    expandable: bool
    key: str = ""


class Algorithm(Protocol):
    """How a search chooses and what it learns. Both are pure: they change nothing that they are given."""

    def choose(self, stats: StatsView) -> Job | None:
        """The next job; None if there is none, or none before those in flight have been told."""
        ...

    def learn(self, stats: StatsView, job: Job, children: Sequence[Child]) -> Stats:
        """The statistics that change by what came of a job."""
        ...


START = Job(node=None, kind="start", first=0, width=1)


def ask(algorithm: Algorithm, stats: StatsView, room: int = 1) -> tuple[list[Job], Stats]:
    """What to do next.

    Args:
        algorithm: The search.
        stats: Statistics of the tree; empty before the first job.
        room: How many jobs may be begun now.

    Returns:
        Up to `room` jobs, and the statistics that have changed: the virtual losses of these jobs.
    """
    if ROOT not in stats:
        return [START][:room], {}
    seen: ChainMap[str, NodeStats] = ChainMap({}, stats)  # type: ignore[arg-type]
    jobs: list[Job] = []
    while len(jobs) < room and (job := algorithm.choose(seen)):
        jobs.append(job)
        seen.update(_send(seen, job))
    return jobs, dict(seen.maps[0])


def tell(algorithm: Algorithm, stats: StatsView, job: Job, children: Sequence[Child]) -> Stats:
    """Add what came of a job.

    Args:
        algorithm: The search.
        stats: Statistics of the tree.
        job: A job that `ask` has given, with the width that it was carried out with.
        children: All nodes that it has made, or the one that it has judged.

    Returns:
        The statistics that have changed; empty if this job is not in flight: it was told before, or withdrawn.
    """
    node = job["node"]
    if node is None:
        return {} if ROOT in stats else {child.node["id"]: leaf(child) for child in children}
    if node not in stats or job["first"] not in stats[node].get("flight", ()):
        return {}
    seen: ChainMap[str, NodeStats] = ChainMap(withdraw(stats, job), stats)  # type: ignore[arg-type]
    seen.update(algorithm.learn(seen, job, children))
    return dict(seen.maps[0])


def withdraw(stats: StatsView, job: Job) -> Stats:
    """Take a job back that is in flight and will not be told, as after a fault: its virtual losses go."""
    node = job["node"]
    if node is None or node not in stats or job["first"] not in stats[node].get("flight", ()):
        return {}
    changed: Stats = {}
    for place in upwards(node):
        changed[place] = _without(stats[place], virtual=stats[place].get("virtual", 0) - 1)
    flight = [first for first in stats[node]["flight"] if first != job["first"]]
    changed[node] = _without(changed[node], flight=flight)
    return changed


def _send(stats: StatsView, job: Job) -> Stats:
    node = job["node"]
    assert node is not None
    changed: Stats = {}
    for place in upwards(node):
        changed[place] = {**stats[place], "virtual": stats[place].get("virtual", 0) + 1}
    changed[node]["flight"] = [*stats[node].get("flight", ()), job["first"]]
    if job["kind"] == "expand":
        changed[ROOT]["begun"] = stats[ROOT].get("begun", 0) + 1
    return changed


def _without(stats: NodeStats, **amounts: object) -> NodeStats:
    """Statistics with some entries replaced; those that have come to nothing are left out."""
    kept = {key: amount for key, amount in {**stats, **amounts}.items() if amount or key not in amounts}
    return kept  # type: ignore[return-value]


def leaf(child: Child) -> NodeStats:
    """The statistics of a new node: its score is the first reward seen."""
    node, score = child.node, child.node["score"]
    judged = score is not None
    closed = not (child.expandable and (judged or node["kind"] == "root"))
    return NodeStats(visits=int(judged), total=score or 0.0, children=0, closed=closed)


def value(node: NodeStats) -> float:
    """Running mean of the rewards seen at and below a node, in 0..1; 0 before the first."""
    return node["total"] / node["visits"] if node["visits"] else 0.0


def children(stats: StatsView, node_id: str) -> list[str]:
    """Ids of a node's children, in order."""
    ids = (f"{node_id}.{i}" for i in range(stats[node_id]["children"]))
    return [child for child in ids if child in stats]


def parent_of(node_id: str) -> str | None:
    """Id of a node's parent, which its own id begins with; None for the root."""
    return node_id.rpartition(".")[0] or None


def upwards(node_id: str) -> Iterator[str]:
    """The ids from a node up to the root, both included."""
    current: str | None = node_id
    while current is not None:
        yield current
        current = parent_of(current)


def path(tree: Tree, node_id: str) -> list[TreeNode]:
    """The nodes from the root down to `node_id`, both included."""
    return [tree[place] for place in upwards(node_id)][::-1]


def depth_of(node_id: str) -> int:
    """How deep a node lies; 0 for the root."""
    return node_id.count(".")


def exact(score: float) -> float:
    """Round a score so that sums of scores are exact."""
    return round(score * EXACT) / EXACT


def best_answer(tree: Tree) -> TreeNode | None:
    """The best answer, wherever it stands: solved before unsolved, then by score, then the shallowest and first."""
    return min((node for node in tree.values() if node["kind"] == "answer"), key=rank, default=None)


def best_step(tree: Tree) -> TreeNode | None:
    """The best node of any kind; None in an empty tree."""
    return min(tree.values(), key=rank, default=None)


def rank(node: TreeNode) -> tuple[bool, float, int, list[int]]:
    """The order of answers, the best first."""
    score = -1.0 if node["score"] is None else node["score"]
    return not node["solved"], -score, node["depth"], [int(part) for part in node["id"].split(".")]
