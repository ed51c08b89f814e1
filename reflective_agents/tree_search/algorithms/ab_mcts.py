"""Adaptive branching Monte Carlo tree search, variant A (Inoue et al. 2025, arXiv 2503.04412, section 3).

At every node Thompson sampling decides whether to go wider (a new child) or deeper (into one of the children), and then
into which child; with several models, which of them makes the new one. What a choice has brought so far is a Beta
distribution: the scores lie in 0..1, and each counts as so much of a success.

- wider: the scores of the children made here;
- deeper: the scores of all nodes below the children. Those of the children do not count: they came of going wider;
- a child, among its siblings: its own score, and those of all below it;
- a model: the scores of all nodes that it has made, anywhere in the tree, and 0 for each failure.

The draws spread jobs that are in flight at once, so their virtual losses are not needed here.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reflective_agents.state.tree import NodeStats, Stats, StatsView
from reflective_agents.tree_search.algorithms.mcts import count_begun
from reflective_agents.tree_search.base import Algorithm, Child, Job, get_extra, leaf, scores_of, with_extra
from reflective_agents.tree_search.tree_paths import ROOT, open_children, parent_of, upwards

WIDER, DEEPER = "+", ">"
"""The two choices at a node: make a new child, or go down into one of its children."""
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

    def choose(self, stats: StatsView) -> Job | None:
        """Draw a path down from the root to a node where going wider wins, and the arm that makes its child."""
        if stats[ROOT]["closed"]:
            return None
        rng = random.Random(f"{self.seed} {get_extra(stats[ROOT], 'begun', 0)}")
        node = ROOT
        while below := open_children(stats, node):
            scores = _scores(stats[node], "arms")
            ways = {way: scores.get(way, UNTRIED) for way in (WIDER, DEEPER)}
            if self._draw(rng, ways) == WIDER:
                break
            seen = {child: (stats[child]["visits"], stats[child]["total"]) for child in below}
            node = self._draw(rng, seen)
        by_model = _scores(stats[ROOT], "models")
        arms = {arm: by_model.get(arm, UNTRIED) for arm in self.arms}
        arm = self._draw(rng, arms)
        return Job(node=node, kind="expand", first=_next_child(stats[node]), width=1, arm=arm)

    def _draw(self, rng: random.Random, choices: Mapping[str, Sequence[float]]) -> str:
        """Return the choice with the highest draw from its posterior (Thompson sampling).

        Args:
            rng: The source of the draws.
            choices: For each choice, the count and the sum of its scores.
        """
        draws: dict[str, float] = {}
        for choice, (count, total) in choices.items():
            successes = self.prior + total
            failures = self.prior + count - total
            draws[choice] = rng.betavariate(successes, failures)
        return max(draws, key=draws.__getitem__)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add the child, and pass its score up: it came of going wider here, and of going deeper above.

        A child that was there before has come up once more: its score counts again, but no node is added.
        """
        node = job["node"]
        changed: Stats = {}
        for child in new:
            if child.node["id"] == f"{node}.{job['first']}":
                changed[child.node["id"]] = leaf(child)
        changed[node] = {**stats[node], "children": max(stats[node]["children"], job["first"] + 1)}
        scores = scores_of(new)
        if scores:
            for key in upwards(node):
                choice = WIDER if key == node else DEEPER
                changed[key] = _rewarded(changed.get(key) or stats[key], choice, scores)
        if len(self.arms) > 1 and (scores or not new):
            root = changed.get(ROOT) or stats[ROOT]
            by_arm = scores or [0.0]
            models = _with_scores(_scores(root, "models"), job.get("arm", ""), len(by_arm), sum(by_arm))
            changed[ROOT] = with_extra(root, models=models)
        return changed

    def rescore(self, stats: StatsView, child: Child, before: float | None) -> Stats:
        """Set the score of a node, and add the difference to the choices that led to it and the model that made it."""
        node = child.node["id"]
        changed = super().rescore(stats, child, before)
        count = int(before is None)
        gained = (child.node["score"] or 0.0) - (before or 0.0)
        for key in changed.keys() - {node}:
            choice = WIDER if key == parent_of(node) else DEEPER
            scores = _with_scores(_scores(changed[key], "arms"), choice, count, gained)
            changed[key] = with_extra(changed[key], arms=scores)
        if len(self.arms) > 1:
            scores = _with_scores(_scores(changed[ROOT], "models"), child.node.get("model", ""), count, gained)
            changed[ROOT] = with_extra(changed[ROOT], models=scores)
        return changed

    def begin(self, stats: StatsView, job: Job) -> Stats:
        """Count the jobs that have begun: each draws with a seed of its own."""
        return count_begun(stats, job)


def _next_child(node: NodeStats) -> int:
    """Return the index of the next child, behind those that are there and those in flight."""
    in_flight = [number + 1 for number in node.get("flight", ())]
    return max([node["children"], *in_flight])


def _scores(node: NodeStats, name: str) -> dict[str, list[float]]:
    """Return count and sum of the scores of each choice: at any node of `arms`, at the root of `models`, too."""
    return get_extra(node, name, {})


def _rewarded(node: NodeStats, choice: str, scores: Sequence[float]) -> NodeStats:
    stat: NodeStats = {**node, "visits": node["visits"] + len(scores), "total": node["total"] + sum(scores)}
    return with_extra(stat, arms=_with_scores(_scores(node, "arms"), choice, len(scores), sum(scores)))


def _with_scores(
    before: Mapping[str, Sequence[float]], choice: str, count: int, total: float
) -> dict[str, list[float]]:
    """Return count and sum of the scores of each choice, with `count` more scores of `total` for one choice."""
    old_count, old_total = before.get(choice, UNTRIED)
    after = {name: list(scores) for name, scores in before.items()}
    after[choice] = [old_count + count, old_total + total]
    return after
