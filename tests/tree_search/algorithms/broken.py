"""Search algorithms that are worse than they should be: what tests of searches have to find out."""

from collections.abc import Sequence
from dataclasses import dataclass

from reflective_agents.state.tree import NodeStats, Stats, StatsView
from reflective_agents.tree_search.algorithms.ab_mcts import AbMcts
from reflective_agents.tree_search.algorithms.mcts import Mcts
from reflective_agents.tree_search.base import Algorithm, Child, Job


@dataclass(frozen=True)
class Misled(Algorithm):
    """A search that takes the good for bad: every score is turned round before it learns from it."""

    inner: Algorithm

    def choose(self, stats: StatsView) -> Job | None:
        return self.inner.choose(stats)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        return self.inner.learn(stats, job, [_turned(child) for child in new])

    def begin(self, stats: StatsView, job: Job) -> Stats:
        return self.inner.begin(stats, job)


def _turned(child: Child) -> Child:
    score, terms = child.node["score"], child.node.get("terms", {})
    turned = {name: 1 - term for name, term in terms.items()}
    return child._replace(node={**child.node, "score": None if score is None else 1 - score, "terms": turned})


class Backwards(Mcts):
    """Goes where the bound is the lowest."""

    def bound(self, node: NodeStats, parent_visits: int) -> float:
        return -super().bound(node, parent_visits)


class Deaf(Mcts):
    """Passes nothing up."""

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        changed = super().learn(stats, job, new)
        for key in changed.keys() & stats.keys():
            changed[key] = {**changed[key], "visits": stats[key]["visits"], "total": stats[key]["total"]}
        return changed


class Shallow(AbMcts):
    """Never refines an answer."""

    def choose(self, stats: StatsView) -> Job | None:
        job = super().choose(stats)
        return job and {**job, "node": "0", "first": stats["0"]["children"]}
