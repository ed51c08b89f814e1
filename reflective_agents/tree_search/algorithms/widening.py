"""MCTS that widens: once no leaf is left, more children are asked for where there are some already.

Each time all leaves are used up, the node that promises most among those that were widened least is expanded once more
(compare progressive widening, Coulom 2007). So a tree may begin narrow, which is cheap, and still grow as wide as the
calls allow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reflective_agents.state.tree import NodeStats, Stats, StatsView
from reflective_agents.tree_search.algorithms.mcts import Mcts
from reflective_agents.tree_search.base import Child, Job, get_extra, overlay, value, with_extra
from reflective_agents.tree_search.tree_paths import child_indices


@dataclass(frozen=True)
class Widening(Mcts):
    """Monte Carlo tree search that begins narrow.

    Attributes:
        widest: How often a node is expanded at most.
    """

    widest: int = 3

    def choose(self, stats: StatsView) -> Job | None:
        """Choose as MCTS does; where it finds nothing, a node to be expanded again."""
        if job := super().choose(stats):
            return job
        is_busy = any(stat.get("flight") for stat in stats.values())
        if is_busy or self._reached(stats):
            return None
        widenable = [key for key, stat in stats.items() if stat["children"] and _times(stat) < self.widest]
        if not widenable:
            return None

        def order(key: str) -> tuple[int, float, list[int]]:
            return _times(stats[key]), -value(stats[key]), child_indices(key)

        node = min(widenable, key=order)
        return Job(node=node, kind="expand", first=stats[node]["children"], width=self.width)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add the children to those that are there already."""
        node = job["node"]
        if not job["first"]:
            return super().learn(stats, job, new)
        reopened = with_extra({**stats[node], "closed": False}, times=_times(stats[node]) + 1)
        return {node: reopened, **super().learn(overlay({node: reopened}, stats), job, new)}


def _times(stat: NodeStats) -> int:
    """Return how often a node was expanded."""
    return get_extra(stat, "times", 1)
