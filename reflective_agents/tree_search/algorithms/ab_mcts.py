"""Adaptive branching Monte Carlo tree search, variant A (Inoue et al. 2025, arXiv 2503.04412, section 3).

At every node Thompson sampling decides whether to go wider (a new child) or deeper (into one of the children), and then
into which child; with several models, which of them makes the new one. What a choice has brought so far is a Beta
distribution: the scores lie in 0..1, and each counts as so much of a success.

- wider: the scores of the children that were made here;
- deeper: the scores of all that was made below the children. Their own do not count: they came of going wider;
- a child, among its siblings: its own score, and those of all below it;
- a model: the scores of all that it has made, wherever in the tree, and 0 for each time that nothing came of it.

The draws spread jobs that are in flight at once, so their virtual losses are not needed here.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reflective_agents.state.tree import NodeStats, Stats, StatsView
from reflective_agents.tree_search.algorithms.mcts import count_begun
from reflective_agents.tree_search.base import Algorithm, Child, Job, leaf, noting, own
from reflective_agents.tree_search.places import ROOT, children, parent_of, upwards

WIDER, DEEPER = "+", ">"
"""The two ways to go on from a node: a new child, or into the children that there are."""
UNTRIED = (0.0, 0.0)


@dataclass(frozen=True)
class AbMcts(Algorithm):
    """Adaptive branching Monte Carlo tree search.

    Attributes:
        arms: Names of the models, or of other ways to make a new child.
        prior: Successes and failures that each choice begins with; 0.5 is Jeffreys' prior.
        seed: What the draws begin with: the same seed and the same results give the same tree.
    """

    arms: tuple[str, ...] = ("",)
    prior: float = 0.5
    seed: str = ""

    def ways(self) -> tuple[str, ...]:
        """Return the arms."""
        return self.arms

    def choose(self, stats: StatsView) -> Job | None:
        """Draw a way down from the root until a node is reached where going wider wins, and who makes its child."""
        if stats[ROOT]["closed"]:
            return None
        luck = random.Random(f"{self.seed} {own(stats[ROOT], 'begun', 0)}")
        node = ROOT
        while inside := [child for child in children(stats, node) if not stats[child]["closed"]]:
            tried = _scores(stats[node], "arms")
            if self._draw(luck, {way: tried.get(way, UNTRIED) for way in (WIDER, DEEPER)}) == WIDER:
                break
            node = self._draw(luck, {child: (stats[child]["visits"], stats[child]["total"]) for child in inside})
        made = _scores(stats[ROOT], "models")
        arm = self._draw(luck, {arm: made.get(arm, UNTRIED) for arm in self.arms})
        return Job(node=node, kind="expand", first=_next_child(stats[node]), width=1, arm=arm)

    def _draw(self, luck: random.Random, ways: Mapping[str, Sequence[float]]) -> str:
        """Select a way by Thompson sampling: the highest draw from its posterior; `ways` hold the count and sum of
        scores."""
        draws = {
            way: luck.betavariate(self.prior + total, self.prior + count - total)
            for way, (count, total) in ways.items()
        }
        return max(draws, key=draws.__getitem__)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add the child, and pass its score up: it came of going wider here, and of going deeper above.

        A child that was there before has come up once more: its score counts again, but no node is added.
        """
        node = job["node"]
        added = (child for child in new if child.node["id"] == f"{node}.{job['first']}")
        changed: Stats = {child.node["id"]: leaf(child) for child in added}
        changed[node] = {**stats[node], "children": max(stats[node]["children"], job["first"] + 1)}
        scores = [child.node["score"] for child in new if child.node["score"] is not None]
        for place in upwards(node) if scores else ():
            changed[place] = _rewarded(changed.get(place) or stats[place], WIDER if place == node else DEEPER, scores)
        if len(self.arms) > 1 and (scores or not new):
            root = changed.get(ROOT) or stats[ROOT]
            changed[ROOT] = noting(root, models=_counted(_scores(root, "models"), job.get("arm", ""), scores or [0.0]))
        return changed

    def rescore(self, stats: StatsView, child: Child, before: float | None) -> Stats:
        """Set the score of a node: whoever chose the ways to it, and the model that made it, see the difference."""
        changed, node = super().rescore(stats, child, before), child.node["id"]
        count, gained = int(before is None), (child.node["score"] or 0.0) - (before or 0.0)
        for place in changed.keys() - {node}:
            way = WIDER if place == parent_of(node) else DEEPER
            tried = _gained(_scores(changed[place], "arms"), way, count, gained)
            changed[place] = noting(changed[place], arms=tried)
        if len(self.arms) > 1:
            made = _gained(_scores(changed[ROOT], "models"), child.node.get("model", ""), count, gained)
            changed[ROOT] = noting(changed[ROOT], models=made)
        return changed

    def begin(self, stats: StatsView, job: Job) -> Stats:
        """Count the jobs that have begun: each draws with a seed of its own."""
        return count_begun(stats, job)


def _next_child(node: NodeStats) -> int:
    return max([node["children"], *(first + 1 for first in node.get("flight", ()))])


def _scores(node: NodeStats, name: str) -> dict[str, list[float]]:
    """Count and sum of the scores of each `arms` (a way to go on from here), or at the root of each of the `models`."""
    return own(node, name, {})


def _rewarded(node: NodeStats, way: str, scores: Sequence[float]) -> NodeStats:
    stat: NodeStats = {**node, "visits": node["visits"] + len(scores), "total": node["total"] + sum(scores)}
    return noting(stat, arms=_counted(_scores(node, "arms"), way, scores))


def _counted(tried: Mapping[str, Sequence[float]], way: str, scores: Sequence[float]) -> dict[str, list[float]]:
    """Count and sum of the scores of each way, with those of one way added."""
    return _gained(tried, way, len(scores), sum(scores))


def _gained(tried: Mapping[str, Sequence[float]], way: str, scores: int, gained: float) -> dict[str, list[float]]:
    """Count and sum of the scores of each way, with so many more and so much more for one way."""
    count, total = tried.get(way, UNTRIED)
    kept = {other: list(amounts) for other, amounts in tried.items()}
    return kept | {way: [count + scores, total + gained]}
