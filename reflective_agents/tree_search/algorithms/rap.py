"""Reasoning via planning (Hao et al. 2023, arXiv 2305.14992, section 3.3): MCTS whose steps are rewarded as they go.

A node is a step that was thought of. Before its first visit it has a prior only, the likelihood of its action; the
visit predicts the state that it leads to, and so its reward, and finds the steps that may follow. A rollout visits one
node after another, always the child with the highest prior, down to the end of its path. What is backpropagated to a
step is the mean of the rewards from there to the end, unless the environment has rewarded the end: then it is that
reward.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

from reflective_agents.state.outcome import Status
from reflective_agents.state.tree import NodeStats, Stats, StatsView
from reflective_agents.tree_search.algorithms.mcts import Mcts, backpropagate
from reflective_agents.tree_search.base import Child, Job, leaf, noting, own, value
from reflective_agents.tree_search.places import ROOT, exact, upwards


@dataclass(frozen=True)
class Rap(Mcts):
    """Reasoning via planning.

    Attributes:
        aggregate: Whether Q of a step is the mean or the maximum of what was backpropagated to it.
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
        """Stop once the paths agree; else continue a rollout, or begin one at the leaf that UCT selects."""
        return None if self.ended(stats) else super().choose(stats)

    def ended(self, stats: StatsView) -> tuple[Status, str] | None:
        """Return the outcome, with its reason, if the paths that have ended agree on an answer."""
        paths, weight = _votes(stats[ROOT])
        if paths < self.min_paths:
            return None
        count, most = _votes(stats[own(stats[ROOT], "lead", "")])
        if most < self.min_share * weight:
            return None
        share = most / weight if weight else 1.0
        return "answered", f"{count:g} of {paths:g} paths agree on the answer, with {share:.0%} of the weight"

    def root(self, child: Child) -> NodeStats:
        """Return the statistics that the root begins with: no node of RAP has a visit before a path through it ends."""
        return leaf(child)

    def bound(self, node: NodeStats, parent_visits: int) -> float:
        """Calculate UCT; a step that was never visited has its prior as Q, and counts as if it had been visited once.

        A virtual loss counts as a visit that has brought nothing.
        """
        visits = max(node["visits"], 1)
        tried = visits + node.get("virtual", 0)
        return self.q_value(node) * visits / tried + self.exploration_weight * sqrt(log(max(parent_visits, 1)) / tried)

    def prune(self, stats: StatsView, node: str) -> Stats:
        """Close a node and all below. What the paths have agreed on until now does not count any more."""
        changed = super().prune(stats, node)
        voted = {key: changed.get(key) or stat for key, stat in stats.items() if own(stat, "votes", None)}
        return {**changed, **{key: noting(stat, votes=[0, 0.0]) for key, stat in voted.items()}}

    def rescore(self, stats: StatsView, child: Child, before: float | None) -> Stats:
        """Set Q of a step, and what it is rewarded with; what paths have brought to the steps above stays."""
        changed, node, score = super().rescore(stats, child, before), child.node["id"], child.node["score"] or 0.0
        visits = stats[node]["visits"]
        known = {"best": score, "reward": score} if visits else {}
        stat: NodeStats = {**changed[node], "visits": visits, "total": score * visits}
        return {**changed, node: noting(stat, prior=score, **known)}

    def q_value(self, node: NodeStats) -> float:
        """Calculate Q: the mean or the maximum of what was backpropagated; before that, the prior."""
        if not node["visits"]:
            return self.promise(node)
        return value(node) if self.aggregate == "mean" else own(node, "best", 0.0)

    def promise(self, node: NodeStats) -> float:
        """Return the likelihood of the action."""
        return own(node, "prior", 0.0)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add what a visit has brought: the reward of the step, and the steps that may follow. Where none may, the path
        has ended, and its rewards are backpropagated."""
        place = job["node"]
        if stats[place]["children"] or stats[place]["closed"]:
            return {}
        visited = next((child for child in new if child.node["id"] == place), None)
        added = {child.node["id"]: _unvisited(child) for child in new if child is not visited}
        known: NodeStats = {**stats[place], "children": len(added)}
        if visited is not None and visited.node["score"] is not None:
            known = noting(known, reward=visited.node["score"])
        changed = backpropagate(stats, place, {place: known, **added}, 0, 0.0)
        open_steps = (key for key in added if not added[key]["closed"])
        if next_step := max(open_steps, key=lambda key: self.promise(added[key]), default=""):
            return self.simulated(changed, place, next_step)
        return self.simulated(self._path_ended(stats, place, changed, visited), place)

    def _path_ended(self, stats: StatsView, place: str, changed: Stats, end: Child | None) -> Stats:
        """Backpropagate the rewards of a path, and count its answer: its key is the first node that has given it."""
        given = None if end is None else end.node.get("reward")
        changed, steps, total = dict(changed), 0, 0.0
        passed = None
        for above in upwards(place):
            node = changed.get(above) or stats[above]
            reward: float | None = own(node, "reward", None)
            if reward is not None:
                steps, total = steps + 1, total + reward
            if not steps:
                continue
            passed = exact(total / steps if given is None else given)
            best = max(passed, own(node, "best", passed))
            stat: NodeStats = {**node, "visits": node["visits"] + 1, "total": node["total"] + passed}
            changed[above] = noting(stat, best=best)
        if end is not None and end.key and passed is not None:
            for voted in (end.key, ROOT):
                changed[voted] = _voted(changed.get(voted) or stats[voted], passed)
            lead = own(changed[ROOT], "lead", "") or end.key
            rivals = {key: _votes(changed.get(key) or stats[key])[1] for key in (lead, end.key)}
            changed[ROOT] = noting(changed[ROOT], lead=min(rivals, key=lambda key: (-rivals[key], key)))
        return changed


def _unvisited(child: Child) -> NodeStats:
    prior = child.node.get("terms", {}).get("r0")
    closed = prior is None or not child.expandable
    return NodeStats(visits=0, total=0.0, children=0, closed=closed, own={"prior": prior or 0.0})


def _votes(node: NodeStats) -> Sequence[float]:
    """Return how many paths ended in the answer that a node was the first to give, and the sum of their rewards.

    At the root they are those of all answers.
    """
    return own(node, "votes", (0, 0.0))


def _voted(node: NodeStats, weight: float) -> NodeStats:
    count, total = _votes(node)
    return noting(node, votes=[count + 1, total + weight])
