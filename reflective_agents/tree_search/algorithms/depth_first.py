"""Depth-first search with pruning (Tree of Thoughts, algorithm 2): the most promising child first, and back where a
state is judged to lead nowhere."""

from collections.abc import Sequence
from dataclasses import dataclass

from reflective_agents.state.limits import Limit
from reflective_agents.state.tree import NodeStats, Stats, StatsView, TreeNode, TreeView
from reflective_agents.tree_search.algorithms.mcts import backpropagate
from reflective_agents.tree_search.base import Algorithm, Child, Job, with_extra
from reflective_agents.tree_search.tree_paths import ROOT, Rank, child_indices, children, parent_of


@dataclass(frozen=True)
class DepthFirst(Algorithm):
    """Depth-first search. Children are judged when their turn comes, in the order in which they were proposed.

    Attributes:
        width: Children asked for at each state.
        prune_below: Lowest score of a state from which the search goes on, the threshold of the paper.
        max_states: Most states visited; None for any number.
    """

    width: int = 3
    prune_below: float = 0.01
    max_states: int | None = 100

    def choose(self, stats: StatsView) -> Job | None:
        """Choose the next job in depth-first order. Nodes in flight are skipped."""
        root = stats[ROOT]
        if self.max_states is not None and root["visits"] + root.get("virtual", 0) >= self.max_states:
            return None
        return self._next(stats, ROOT)

    def _next(self, stats: StatsView, node_id: str) -> Job | None:
        node = stats[node_id]
        if node["closed"]:
            return None
        for child in children(stats, node_id):
            if job := self._next(stats, child):
                return job
        if node["children"] or node.get("flight"):
            return None
        if node["visits"] or node_id == ROOT:
            return Job(node=node_id, kind="expand", first=0, width=self.width)
        return Job(node=node_id, kind="judge", first=0, width=1, nodes=[node_id])

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add children, which wait for their visit; or the result of a visit, and close what scores too low."""
        node = job["node"]
        if job["kind"] == "judge":
            return self._with_visit(stats, node, new)
        if stats[node]["children"] or stats[node]["closed"]:
            return {}
        changed: Stats = {node: {**stats[node], "children": len(new)}}
        for child in new:
            changed[child.node["id"]] = NodeStats(visits=0, total=0.0, children=0, closed=False)
        return backpropagate(stats, node, changed, 0, 0.0)

    def _with_visit(self, stats: StatsView, node: str, judged: Sequence[Child]) -> Stats:
        """Add the score of a state; one that could not be judged is closed."""
        score = judged[0].node["score"] if judged else None
        if score is None:
            return backpropagate(stats, str(parent_of(node)), {node: {**stats[node], "closed": True}}, 0, 0.0)
        pruned = score < self.prune_below
        closed = pruned or not judged[0].expandable
        stat: NodeStats = {**stats[node], "visits": 1, "total": score, "closed": closed}
        changed: Stats = {node: with_extra(stat, pruned=pruned or None)}
        return backpropagate(stats, str(parent_of(node)), changed, 1, score)

    def rescore(self, stats: StatsView, child: Child, before: float | None) -> Stats:
        """Set the score of a state, which is pruned if that is too low."""
        changed = super().rescore(stats, child, before)
        if (child.node["score"] or 0.0) >= self.prune_below:
            return changed
        return changed | self.prune({**stats, **changed}, child.node["id"])

    def limit(self, stats: StatsView) -> Limit | None:
        """Return the limit of visited states, where it has ended the search."""
        most = self.max_states
        visited = stats[ROOT]["visits"]
        if most is None or visited < most or stats[ROOT]["closed"]:
            return None
        return Limit(name="max_states", most=most, spent=visited)

    def promise(self, node: NodeStats) -> float:
        """Return 1: what was not visited yet may be the best."""
        return 1.0

    def rank(self, tree: TreeView, node: TreeNode) -> Rank:
        """Sort answers: solved, then those that were visited, the deepest, by score, and the first of equals (section
        4.3: the deepest explored state is the output)."""
        score = node["score"]
        return (not node["solved"], score is None, -node["depth"], -(score or 0.0), *child_indices(node["id"]))
