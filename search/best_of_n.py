"""Best of N: independent trajectories from the same beginning, of which the best answer wins.

The baseline of every search: it neither looks at what comes of a step before it takes the next one, nor goes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from search.base import ROOT, Child, Job, children, leaf
from search.mcts import passed_up
from state.tree import Stats, StatsView


@dataclass(frozen=True)
class BestOfN:
    """The trajectories as a tree: those that begin alike share their first nodes, and go on as many as they are.

    Attributes:
        width: How many trajectories, N.
    """

    exhausted: ClassVar[str] = "all trajectories have ended"
    width: int = 5

    def choose(self, stats: StatsView) -> Job | None:
        """Go on from the first open end: a trajectory comes to its end before the next one is taken up."""
        waiting = [ROOT]
        while waiting:
            node = waiting.pop()
            if stats[node]["closed"] or stats[node].get("flight"):
                continue
            if not stats[node]["children"]:
                width = self.width if node == ROOT else stats[node].get("chains", 1)
                return Job(node=node, kind="expand", first=0, width=width)
            waiting += reversed(children(stats, node))
        return None

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add the steps. A node stands for as many trajectories as samples have come to it."""
        node = job["node"]
        assert node is not None
        if stats[node]["children"] or stats[node]["closed"]:
            return {}
        changed: Stats = {node: {**stats[node], "children": len(new)}}
        for child in new:
            chains = child.node.get("samples", 1)
            changed[child.node["id"]] = {**leaf(child), "closed": not child.expandable, "chains": chains}
        scores = [child.node["score"] for child in new if child.node["score"] is not None]
        return passed_up(stats, node, changed, len(scores), sum(scores))
