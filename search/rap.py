"""Reasoning via planning (Hao et al. 2023, arXiv 2305.14992, section 3.3): MCTS whose steps are rewarded as they go.

A node is a step that was thought of. Before its first visit it has a prior only, the likelihood of its action; the
visit predicts the state that it leads to, and so its reward, and finds the steps that may follow. A rollout visits one
node after another, always the child with the highest prior, down to the end of its path. What is passed up to a step is
the mean of the rewards from there to the end, unless the environment has rewarded the end: then it is that reward.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

from search.base import ROOT, Child, Job, exact, upwards, value
from search.mcts import Mcts, passed_up
from state.tree import NodeStats, Stats, StatsView


@dataclass(frozen=True)
class Rap(Mcts):
    """The search.

    Attributes:
        aggregate: Whether a step is worth the mean or the maximum of what was passed up to it.
        min_paths: Fewest paths that must have ended in an answer before their agreement ends the search.
        min_share: Share of the weight of all paths that one answer needs for that, 0..1.
    """

    width: int = 4
    simulate: bool = True
    max_rollouts: int | None = 10
    aggregate: Literal["mean", "max"] = "max"
    min_paths: int = 3
    min_share: float = 0.7

    def choose(self, stats: StatsView) -> Job | None:
        """Nothing more once the paths agree; else go on with a rollout, or begin one at the leaf that UCT selects."""
        return None if self.ended(stats) else super().choose(stats)

    def ended(self, stats: StatsView) -> tuple[str, str] | None:
        """The outcome, with its reason, if the paths that have ended agree on an answer."""
        paths, weight = stats[ROOT].get("votes", (0, 0.0))
        if paths < self.min_paths:
            return None
        count, most = stats[stats[ROOT]["lead"]]["votes"]
        if most < self.min_share * weight:
            return None
        share = most / weight if weight else 1.0
        return "solved", f"{count:g} of {paths:g} paths agree on the answer, with {share:.0%} of the weight"

    def bound(self, node: NodeStats, parent_visits: int) -> float:
        """UCT; a step that was never visited is worth its prior, and counts as if it had been visited once.

        A virtual loss counts as a visit that has brought nothing.
        """
        visits = max(node["visits"], 1)
        tried = visits + node.get("virtual", 0)
        return self.worth(node) * visits / tried + self.exploration_weight * sqrt(log(max(parent_visits, 1)) / tried)

    def worth(self, node: NodeStats) -> float:
        """Q: the mean or the maximum of what was passed up; before that, the prior."""
        if not node["visits"]:
            return node.get("prior", 0.0)
        return value(node) if self.aggregate == "mean" else node.get("best", 0.0)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add what a visit has brought: the reward of the step, and the steps that may follow. Where none may, the path
        has ended, and its rewards are passed up."""
        place = job["node"]
        assert place is not None
        if stats[place]["children"] or stats[place]["closed"]:
            return {}
        own = next((child for child in new if child.node["id"] == place), None)
        added = {child.node["id"]: _unvisited(child) for child in new if child is not own}
        known: NodeStats = {**stats[place], "children": len(added)}
        if own is not None and own.node["score"] is not None:
            known["reward"] = own.node["score"]
        goes_on = max(
            (key for key in added if not added[key]["closed"]), key=lambda key: added[key]["prior"], default=None
        )
        changed = passed_up(stats, place, {place: known, **added}, 0, 0.0)
        if goes_on is None:
            changed = self._returned(stats, place, changed, own)
        return {**changed, ROOT: self._rollouts(changed[ROOT], place, goes_on)}

    def _returned(self, stats: StatsView, place: str, changed: Stats, end: Child | None) -> Stats:
        """Pass the rewards of a path up, and count its answer: its key is the first node that has given it."""
        given = None if end is None else end.node.get("reward")
        changed, steps, total = dict(changed), 0, 0.0
        passed = None
        for above in upwards(place):
            node = changed.get(above) or stats[above]
            if "reward" in node:
                steps, total = steps + 1, total + node["reward"]
            if not steps:
                continue
            passed = exact(total / steps if given is None else given)
            best = max(passed, node.get("best", passed))
            changed[above] = {**node, "visits": node["visits"] + 1, "total": node["total"] + passed, "best": best}
        if end is not None and end.key and passed is not None:
            for voted in (end.key, ROOT):
                changed[voted] = _voted(changed.get(voted) or stats[voted], passed)
            lead = changed[ROOT].get("lead", end.key)
            rivals = {key: (changed.get(key) or stats[key])["votes"][1] for key in (lead, end.key)}
            changed[ROOT]["lead"] = min(rivals, key=lambda key: (-rivals[key], key))
        return changed


def _unvisited(child: Child) -> NodeStats:
    prior = child.node.get("terms", {}).get("r0")
    closed = prior is None or not child.expandable
    return NodeStats(visits=0, total=0.0, children=0, closed=closed, prior=prior or 0.0)


def _voted(node: NodeStats, weight: float) -> NodeStats:
    count, total = node.get("votes", (0, 0.0))
    return {**node, "votes": [count + 1, total + weight]}
