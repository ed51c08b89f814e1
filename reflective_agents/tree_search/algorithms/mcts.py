"""Monte Carlo tree search (LATS, section 4.2): selection, simulation and backpropagation over plain data.

A rollout selects a leaf by UCT and has it expanded. Without simulation the scores of all children are rewards, and are
backpropagated at once. With simulation the best child is expanded in turn, and so on down to the end of the task; the
reward that is met there is backpropagated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reflective_agents.state.limits import Limit
from reflective_agents.state.tree import NodeStats, Stats, StatsView
from reflective_agents.tree_search.base import Algorithm, Child, Job, get_extra, leaf, overlay, value, with_extra
from reflective_agents.tree_search.tree_paths import ROOT, open_children, upwards


def uct(node: NodeStats, parent_visits: int, weight: float) -> float:
    """Calculate the UCT score of a node: value + w * sqrt(ln N(parent) / N). Infinite before the first visit.

    A virtual loss counts as a visit that has brought nothing.
    """
    visits = node["visits"] + node.get("virtual", 0)
    if not visits:
        return math.inf
    return node["total"] / visits + weight * math.sqrt(math.log(max(parent_visits, 1)) / visits)


@dataclass(frozen=True)
class Mcts(Algorithm):
    """Monte Carlo tree search.

    Attributes:
        width: Children asked for at each expansion, n.
        exploration_weight: w of UCT.
        simulate: Whether each expansion is followed by a simulation from its best child.
        max_rollouts: Most rollouts begun, K; None for any number.
    """

    width: int = 5
    exploration_weight: float = 1.0
    simulate: bool = False
    max_rollouts: int | None = None

    def choose(self, stats: StatsView) -> Job | None:
        """Continue a simulation that is under way, else begin a rollout at the leaf that UCT selects."""
        for node in _simulated(stats):
            if not stats[node].get("flight"):
                return Job(node=node, kind="simulate", first=0, width=self.width)
        if self._reached(stats):
            return None
        selected = self.select(stats)
        return None if selected is None else Job(node=selected, kind="expand", first=0, width=self.width)

    def select(self, stats: StatsView) -> str | None:
        """Walk from the root to a leaf, taking the open child with the highest UCT at each level (the first one of a
        tie). Leaves that are being expanded are passed over.

        Returns:
            The id of the leaf to expand, or None if nothing is left that could be expanded now.
        """
        if ROOT not in stats or stats[ROOT]["closed"]:
            return None
        return self._descend(stats, ROOT)

    def _descend(self, stats: StatsView, node_id: str) -> str | None:
        if not stats[node_id]["children"]:
            is_busy = stats[node_id].get("flight") or node_id in _simulated(stats)
            return None if is_busy else node_id
        for child in self.order(stats, node_id, open_children(stats, node_id)):
            if found := self._descend(stats, child):
                return found
        return None

    def order(self, stats: StatsView, node_id: str, open_children: Sequence[str]) -> list[str]:
        """Sort the open children of a node, the one to go on with first."""
        visits = stats[node_id]["visits"] + stats[node_id].get("virtual", 0)
        return sorted(open_children, key=lambda child: -self.bound(stats[child], visits))

    def bound(self, node: NodeStats, parent_visits: int) -> float:
        """Return the bound on a child's value by which it is selected: UCT."""
        return uct(node, parent_visits, self.exploration_weight)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add the children of an expansion, and backpropagate their rewards, or the reward of a simulation that has
        ended."""
        node = job["node"]
        if stats[node]["children"] > job["first"] or stats[node]["closed"]:
            return {}
        added = {child.node["id"]: leaf(child) for child in new}
        changed: Stats = {node: {**stats[node], "children": job["first"] + len(added)}, **added}
        if not self.simulate:
            rewards = [stat["total"] for stat in added.values() if stat["visits"]]
            return backpropagate(stats, node, changed, len(rewards), sum(rewards))
        scored = [child for child in new if child.node["score"] is not None]
        best = max(scored, key=_score, default=None)
        if best and not added[best.node["id"]]["closed"]:
            return self.simulated(backpropagate(stats, node, changed, 0, 0.0), node, best.node["id"])
        reward = _score(best) if best else value(stats[node])
        return self.simulated(backpropagate(stats, node, changed, 1, reward), node)

    def simulated(self, changed: Stats, node: str, then: str = "") -> Stats:
        """Store at the root that a simulation continues from `then`, and no longer from `node`."""
        waiting = {*_simulated(changed), then} - {node, ""}
        return {**changed, ROOT: with_extra(changed[ROOT], rollouts=sorted(waiting) or None)}

    def root(self, child: Child) -> NodeStats:
        """Return the statistics that the root begins with.

        Where rollouts are simulated, a root without a score counts as visited once, as every other node is by its own
        score: else ln N(root) were 0 after the first rollout, and the second one would not explore.
        """
        stat = leaf(child)
        if self.simulate:
            stat["visits"] = 1
        return stat

    def begin(self, stats: StatsView, job: Job) -> Stats:
        """Count the rollouts that have begun."""
        return count_begun(stats, job)

    def limit(self, stats: StatsView) -> Limit | None:
        """Return the limit of rollouts, where it has ended the search."""
        return None if stats[ROOT]["closed"] else self._reached(stats)

    def _reached(self, stats: StatsView) -> Limit | None:
        spent = get_extra(stats[ROOT], "begun", 0)
        if self.max_rollouts is None or spent < self.max_rollouts:
            return None
        return Limit(name="max_rollouts", most=self.max_rollouts, spent=spent)


def backpropagate(stats: StatsView, node_id: str, changed: Stats, visits: int, total: float) -> Stats:
    """Add rewards to every node from `node_id` up to the root, and close those below which nothing is open.

    Args:
        stats: Statistics before.
        node_id: The node where the rewards were received.
        changed: Statistics that have changed already.
        visits: The number of rewards.
        total: Their sum.
    """
    changed = dict(changed)
    current = overlay(changed, stats)
    for key in upwards(node_id):
        node = current[key]
        closed = not open_children(current, key)
        current[key] = {**node, "visits": node["visits"] + visits, "total": node["total"] + total, "closed": closed}
    return changed


def count_begun(stats: StatsView, job: Job) -> Stats:
    """Count at the root the expansions that have begun, including those that were withdrawn."""
    if job["kind"] != "expand":
        return {}
    return {ROOT: with_extra(stats[ROOT], begun=get_extra(stats[ROOT], "begun", 0) + 1)}


def _simulated(stats: StatsView) -> list[str]:
    """Return the nodes from which a simulation has to continue."""
    return get_extra(stats[ROOT], "rollouts", [])


def _score(child: Child) -> float:
    return child.node["score"] or 0.0
