"""Best of N: independent trajectories from the same beginning, of which the best answer wins.

The baseline of every tree search: it neither looks at what comes of a step before it takes the next one, nor goes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reflective_agents.state.tree import Stats, StatsView
from reflective_agents.tree_search.algorithms.mcts import backpropagate
from reflective_agents.tree_search.base import Algorithm, Child, Job, get_extra, leaf, scores_of, with_extra
from reflective_agents.tree_search.tree_paths import ROOT, children


@dataclass(frozen=True)
class BestOfN(Algorithm):
    """The trajectories as a tree: those that begin alike share their first nodes.

    Attributes:
        width: How many trajectories, N.
    """

    width: int = 5

    def choose(self, stats: StatsView) -> Job | None:
        """Continue the first open trajectory: one trajectory ends before the next begins."""
        waiting = [ROOT]
        while waiting:
            node = waiting.pop()
            if stats[node]["closed"] or stats[node].get("flight"):
                continue
            if not stats[node]["children"]:
                width = self.width if node == ROOT else get_extra(stats[node], "chains", 1)
                return Job(node=node, kind="expand", first=0, width=width)
            waiting += reversed(children(stats, node))
        return None

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add the steps. A node stands for as many trajectories as samples have proposed it."""
        node = job["node"]
        if stats[node]["children"] or stats[node]["closed"]:
            return {}
        changed: Stats = {node: {**stats[node], "children": len(new)}}
        for child in new:
            stat = with_extra(leaf(child), chains=child.node.get("samples", 1))
            changed[child.node["id"]] = {**stat, "closed": not child.expandable}
        scores = scores_of(new)
        return backpropagate(stats, node, changed, len(scores), sum(scores))

    @property
    def exhausted(self) -> str:
        """Why a search ends in which there is nothing left to choose."""
        return "all trajectories have ended"
