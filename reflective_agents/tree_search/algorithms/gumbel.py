"""Gumbel search with sequential halving (Danihelka et al. 2022, "Policy improvement by planning with Gumbel"; for
language models ReSCALE, Ugadiarov et al. 2026, arXiv 2603.21162).

UCT spends a larger budget by the values that it has, and so digs deeper where a judge errs. Here the root's children
compete in rounds: all survivors get the same number of rollouts, and after each round the better half goes on. What
they are ranked by is g + logit + sigma(q): a Gumbel draw, which makes the choice of the first ones a sample without
replacement from the policy; the logarithm of the policy, here of how many samples came to the same step; and the value.
Below the root nothing is drawn: the child is taken that has the fewest visits for its improved policy.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, log, log2

from reflective_agents.state.tree import NodeStats, Stats, StatsView
from reflective_agents.tree_search.algorithms.mcts import Mcts
from reflective_agents.tree_search.base import Child, Job, get_extra, overlay, value, with_extra, withdraw
from reflective_agents.tree_search.tree_paths import ROOT, children, upwards

VISITS, SCALE = 50, 1.0
"""c_visit and c_scale of sigma(q) = (c_visit + max N) * c_scale * q: the more visits, the more values count."""


@dataclass(frozen=True)
class Gumbel(Mcts):
    """Gumbel search with sequential halving at the root.

    Attributes:
        considered: How many children of the root compete, m.
        rollouts: How many rollouts they share, N.
        seed: What the draws begin with.
    """

    considered: int = 8
    rollouts: int = 30
    seed: str = ""

    def order(self, stats: StatsView, node_id: str, open_children: Sequence[str]) -> list[str]:
        """Sort children, the one to go on with first."""
        if node_id != ROOT:
            policy = self._improved(stats, open_children)
            tried = sum(_visits(stats[child]) for child in open_children)
            return sorted(open_children, key=lambda child: _visits(stats[child]) / (1 + tried) - policy[child])
        alive, _ = self._round(stats)
        strength = self._strength(stats)
        return sorted(open_children, key=lambda child: (child not in alive, _tried(stats[child]), -strength[child]))

    def begin(self, stats: StatsView, job: Job) -> Stats:
        """Count the rollout at the child of the root that it goes through, and store the survivors."""
        changed = dict(super().begin(stats, job))
        if job["kind"] == "expand" and job["node"] != ROOT:
            child = [*upwards(job["node"])][-2]
            alive, number = self._round(overlay(withdraw(stats, job), stats))  # as it stood when this job was chosen
            changed[child] = with_extra(stats[child], tried=_tried(stats[child]) + 1)
            changed[ROOT] = with_extra(changed.get(ROOT) or stats[ROOT], alive=alive, round=number)
        return changed

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Learn as MCTS does, and store how many samples proposed each step."""
        changed = dict(super().learn(stats, job, new))
        for child in new:
            node = child.node["id"]
            samples = child.node.get("samples", 1)
            if samples > 1 and node in changed:
                changed[node] = with_extra(changed[node], samples=samples)
        return changed

    def _round(self, stats: StatsView) -> tuple[list[str], int]:
        """Return the surviving children, and the number of the round, after the halvings that are due by now."""
        strength = self._strength(stats)
        ranked = sorted(strength, key=lambda child: -strength[child])
        alive: list[str] = get_extra(stats[ROOT], "alive", []) or ranked[: self.considered]
        number: int = get_extra(stats[ROOT], "round", 1)
        competing = min(self.considered, len(ranked))
        while len(alive) > 1:
            tried = [_tried(stats[child]) for child in alive if not stats[child]["closed"]]
            if len(tried) < 2 or min(tried) < self._due(number, competing):
                break
            half = ceil(len(alive) / 2)
            left = [child for child in ranked if child in alive]
            alive = left[:half]
            number += 1
        return alive, number

    def _due(self, number: int, competing: int) -> int:
        """Return how many rollouts a child has had by the end of a round: N / rounds are shared in each by those of the
        `competing` children that are left."""
        rounds = ceil(log2(competing))
        survivors = [ceil(competing / 2**halvings) for halvings in range(number)]
        return sum(max(int(self.rollouts / (rounds * count)), 1) for count in survivors)

    def _strength(self, stats: StatsView) -> dict[str, float]:
        """Return g + logit + sigma(q) of each child of the root."""
        kids = children(stats, ROOT)
        most = max((_visits(stats[kid]) for kid in kids), default=0)
        return {kid: self._draw(kid) + _logit(stats[kid]) + _sigma(value(stats[kid]), most) for kid in kids}

    def _draw(self, child: str) -> float:
        """Draw from the Gumbel distribution, always the same for a child."""
        draw = random.Random(f"{self.seed} {child}").random()
        return -log(-log(min(max(draw, 1e-12), 1 - 1e-12)))

    def _improved(self, stats: StatsView, nodes: Sequence[str]) -> dict[str, float]:
        """Return the improved policy: the softmax of logit + sigma(q)."""
        most = max((_visits(stats[node]) for node in nodes), default=0)
        logits = {node: _logit(stats[node]) + _sigma(value(stats[node]), most) for node in nodes}
        top = max(logits.values(), default=0.0)
        weights = {node: exp(logit - top) for node, logit in logits.items()}
        total = sum(weights.values()) or 1.0
        return {node: weight / total for node, weight in weights.items()}


def _visits(node: NodeStats) -> int:
    return node["visits"] + node.get("virtual", 0)


def _tried(node: NodeStats) -> int:
    return get_extra(node, "tried", 0)


def _logit(node: NodeStats) -> float:
    return log(get_extra(node, "samples", 1))


def _sigma(q: float, most: int) -> float:
    return (VISITS + most) * SCALE * q
