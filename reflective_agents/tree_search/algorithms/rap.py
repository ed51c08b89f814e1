"""Reasoning via planning (Hao et al. 2023, arXiv 2305.14992, section 3.3): MCTS whose steps are rewarded as they go.

A node is a step that was thought of. Before its first visit it has a prior only, the likelihood of its action; the
visit predicts the state that it leads to, and so its reward, and finds the steps that may follow. A rollout visits one
node after another, always the child with the highest prior, down to the end of its path. A step
receives the mean of the rewards from there to the end, or the reward of the environment if it has rewarded the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

from reflective_agents.state.outcome import Status
from reflective_agents.state.tree import NodeStats, Stats, StatsView
from reflective_agents.tree_search.algorithms.mcts import Mcts, backpropagate
from reflective_agents.tree_search.base import Child, Job, get_extra, leaf, overlay, value, with_extra
from reflective_agents.tree_search.tree_paths import ROOT, round_score, upwards


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
        count, most = _votes(stats[get_extra(stats[ROOT], "lead", "")])
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
        """Close a node and all below. The votes of all paths so far do not count any longer."""
        changed = super().prune(stats, node)
        for key, stat in stats.items():
            if get_extra(stat, "votes", None):
                changed[key] = with_extra(changed.get(key) or stat, votes=[0, 0.0])
        return changed

    def rescore(self, stats: StatsView, child: Child, before: float | None) -> Stats:
        """Set Q and the reward of a step; what paths have passed to the steps above stays."""
        changed = super().rescore(stats, child, before)
        node = child.node["id"]
        score = child.node["score"] or 0.0
        visits = stats[node]["visits"]
        stat = with_extra({**changed[node], "visits": visits, "total": score * visits}, prior=score)
        if visits:
            stat = with_extra(stat, best=score, reward=score)
        return {**changed, node: stat}

    def q_value(self, node: NodeStats) -> float:
        """Calculate Q: the mean or the maximum of what was backpropagated; before that, the prior."""
        if not node["visits"]:
            return self.promise(node)
        return value(node) if self.aggregate == "mean" else get_extra(node, "best", 0.0)

    def promise(self, node: NodeStats) -> float:
        """Return the likelihood of the action."""
        return get_extra(node, "prior", 0.0)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add the results of a visit: the reward of the step, and the steps that may follow. If there are none, the
        path has ended, and its rewards are backpropagated."""
        node = job["node"]
        if stats[node]["children"] or stats[node]["closed"]:
            return {}
        visited: Child | None = None
        added: Stats = {}
        for child in new:
            if child.node["id"] == node:
                visited = child
            else:
                added[child.node["id"]] = _unvisited(child)
        stat: NodeStats = {**stats[node], "children": len(added)}
        if visited is not None and visited.node["score"] is not None:
            stat = with_extra(stat, reward=visited.node["score"])
        changed = backpropagate(stats, node, {node: stat, **added}, 0, 0.0)
        open_steps = [key for key in added if not added[key]["closed"]]
        if open_steps:
            next_step = max(open_steps, key=lambda key: self.promise(added[key]))
            return self.simulated(changed, node, next_step)
        return self.simulated(self._with_path(stats, node, changed, visited), node)

    def _with_path(self, stats: StatsView, node_id: str, changed: Stats, end: Child | None) -> Stats:
        """Backpropagate the rewards of a path, and count its answer: its key is the first node with this answer."""
        final_reward = None if end is None else end.node.get("reward")
        changed = dict(changed)
        current = overlay(changed, stats)
        rewards: list[float] = []
        passed_up: float | None = None
        for key in upwards(node_id):
            node = current[key]
            reward: float | None = get_extra(node, "reward", None)
            if reward is not None:
                rewards.append(reward)
            if not rewards:
                continue
            passed_up = round_score(sum(rewards) / len(rewards) if final_reward is None else final_reward)
            best = max(passed_up, get_extra(node, "best", passed_up))
            stat: NodeStats = {**node, "visits": node["visits"] + 1, "total": node["total"] + passed_up}
            current[key] = with_extra(stat, best=best)
        if end is not None and end.key and passed_up is not None:
            for voted in (end.key, ROOT):
                current[voted] = _with_vote(current[voted], passed_up)
            current[ROOT] = with_extra(current[ROOT], lead=_heavier(current, end.key))
        return changed


def _heavier(stats: StatsView, key: str) -> str:
    """Return the answer that leads now: the one that has led so far, or the one that has just gained a path."""
    lead = get_extra(stats[ROOT], "lead", "") or key
    _, weight = _votes(stats[lead])
    _, rival_weight = _votes(stats[key])
    if weight == rival_weight:
        return min(lead, key)
    return lead if weight > rival_weight else key


def _unvisited(child: Child) -> NodeStats:
    prior = child.node.get("terms", {}).get("r0")
    closed = prior is None or not child.expandable
    return NodeStats(visits=0, total=0.0, children=0, closed=closed, own={"prior": prior or 0.0})


def _votes(node: NodeStats) -> Sequence[float]:
    """Return how many paths ended in the answer of a node, the first with this answer, and the sum of their rewards; at
    the root, those of all answers."""
    return get_extra(node, "votes", (0, 0.0))


def _with_vote(node: NodeStats, weight: float) -> NodeStats:
    count, total = _votes(node)
    return with_extra(node, votes=[count + 1, total + weight])
