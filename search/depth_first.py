"""Depth-first search with pruning (Tree of Thoughts, algorithm 2): the most promising child first, and back where a
state is judged to lead nowhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from search.base import ROOT, Child, Job, children, parent_of
from search.mcts import passed_up
from state.tree import NodeStats, Stats, StatsView, TreeNode


@dataclass(frozen=True)
class DepthFirst:
    """The search. Children are judged when their turn comes, in the order in which they were proposed.

    Attributes:
        width: Children asked for at each state.
        prune_below: Lowest score at which a state is gone on with, the threshold of the paper.
        max_states: Most states visited; None for any number.
    """

    width: int = 3
    prune_below: float = 0.01
    max_states: int | None = 100

    def choose(self, stats: StatsView) -> Job | None:
        """The next thing to do in depth-first order. What is in flight is passed over, as if it led nowhere."""
        root = stats[ROOT]
        if self.max_states is not None and root["visits"] + root.get("virtual", 0) >= self.max_states:
            return None
        return self._next(stats, ROOT)

    def _next(self, stats: StatsView, node_id: str) -> Job | None:
        node = stats[node_id]
        if node["children"] and not node["closed"]:
            return next((job for child in children(stats, node_id) if (job := self._next(stats, child))), None)
        if node["closed"] or node.get("flight"):
            return None
        if node["visits"] or node_id == ROOT:
            return Job(node=node_id, kind="expand", first=0, width=self.width)
        return Job(node=node_id, kind="judge", first=0, width=1, nodes=[node_id])

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Take in children, which wait to be visited; or a visit, and close what is not worth going on with."""
        node = job["node"]
        assert node is not None
        if job["kind"] == "judge":
            return self._visited(stats, node, new)
        if stats[node]["children"] or stats[node]["closed"]:
            return {}
        fresh = NodeStats(visits=0, total=0.0, children=0, closed=False)
        changed: Stats = {node: {**stats[node], "children": len(new)}}
        changed |= {child.node["id"]: fresh for child in new}
        return passed_up(stats, node, changed, 0, 0.0)

    def _visited(self, stats: StatsView, node: str, judged: Sequence[Child]) -> Stats:
        """What a visit changes; a state that could not be judged is closed."""
        score = judged[0].node["score"] if judged else None
        if score is None:
            return passed_up(stats, str(parent_of(node)), {node: {**stats[node], "closed": True}}, 0, 0.0)
        pruned = score < self.prune_below
        closed = pruned or not judged[0].expandable
        stat: NodeStats = {**stats[node], "visits": 1, "total": score, "closed": closed}
        changed: Stats = {node: {**stat, "pruned": True} if pruned else stat}
        return passed_up(stats, str(parent_of(node)), changed, 1, score)


def deepest(tree: Mapping[str, TreeNode], node: TreeNode) -> Any:
    """The order of answers: solved, then those that were visited, the deepest, by score, and the first of equals
    (section 4.3: the deepest explored state is the output)."""
    score = node["score"]
    places = [int(part) for part in node["id"].split(".")]
    return not node["solved"], score is None, -node["depth"], -(score or 0.0), places
