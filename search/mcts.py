"""Monte Carlo tree search (LATS, section 4.2): selection, expansion, simulation and backpropagation over plain data.

A rollout selects a leaf by UCT and has it expanded. Without simulation the scores of all children are rewards, and are
passed up at once. With simulation the best child is expanded in turn, and so on down to the end of the task; the reward
that is met there is the one that is passed up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from search.base import ROOT, Child, Job, children, leaf, upwards, value
from state.tree import NodeStats, Stats, StatsView


def uct(node: NodeStats, parent_visits: int, weight: float) -> float:
    """Upper confidence bound of a node: value + w * sqrt(ln N(parent) / N). Infinite before the first visit.

    A virtual loss counts as a visit that has brought nothing.
    """
    visits = node["visits"] + node.get("virtual", 0)
    if not visits:
        return math.inf
    return node["total"] / visits + weight * math.sqrt(math.log(max(parent_visits, 1)) / visits)


@dataclass(frozen=True)
class Mcts:
    """The search.

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
        """Go on with a simulation that is under way, else begin a rollout at the leaf that UCT selects."""
        waiting = (node for node in stats[ROOT].get("rollouts", ()) if not stats[node].get("flight"))
        if (node := next(waiting, None)) is not None:
            return Job(node=node, kind="simulate", first=0, width=self.width)
        if self.max_rollouts is not None and stats[ROOT].get("begun", 0) >= self.max_rollouts:
            return None
        selected = self.select(stats)
        return None if selected is None else Job(node=selected, kind="expand", first=0, width=self.width)

    def select(self, stats: StatsView) -> str | None:
        """Walk from the root to a leaf, taking the open child with the highest UCT at each level (the first one of a
        tie). Leaves that are being expanded are passed over.

        Returns:
            The id of the leaf to expand, or None if nothing is left that could be expanded now.
        """
        return None if ROOT not in stats or stats[ROOT]["closed"] else self._descend(stats, ROOT)

    def _descend(self, stats: StatsView, node_id: str) -> str | None:
        node = stats[node_id]
        if not node["children"]:
            return None if node.get("flight") or node_id in stats[ROOT].get("rollouts", ()) else node_id
        visits = node["visits"] + node.get("virtual", 0)
        open_children = [child for child in children(stats, node_id) if not stats[child]["closed"]]
        ranked = sorted(open_children, key=lambda child: -self.bound(stats[child], visits))
        return next((found for child in ranked if (found := self._descend(stats, child))), None)

    def bound(self, node: NodeStats, parent_visits: int) -> float:
        """What a child is chosen by."""
        return uct(node, parent_visits, self.exploration_weight)

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Add the children of an expansion, and pass up what they, or the simulation that has ended, have brought."""
        node_id = job["node"]
        assert node_id is not None
        if stats[node_id]["children"] or stats[node_id]["closed"]:
            return {}
        added = {child.node["id"]: leaf(child) for child in new}
        changed: Stats = {node_id: {**stats[node_id], "children": len(added)}, **added}
        if not self.simulate:
            rewards = [stat["total"] for stat in added.values() if stat["visits"]]
            return passed_up(stats, node_id, changed, len(rewards), sum(rewards))
        best = max((child for child in new if child.node["score"] is not None), key=_score, default=None)
        goes_on = best is not None and not added[best.node["id"]]["closed"]
        reward = _score(best) if best else value(stats[node_id])
        changed = passed_up(stats, node_id, changed, int(not goes_on), 0.0 if goes_on else reward)
        return {**changed, ROOT: self._rollouts(changed[ROOT], node_id, best.node["id"] if best and goes_on else None)}

    def _rollouts(self, root: NodeStats, done: str, then: str | None) -> NodeStats:
        waiting = sorted({*root.get("rollouts", ()), *([then] if then else [])} - {done})
        kept = {key: entry for key, entry in root.items() if key != "rollouts"}
        return {**kept, **({"rollouts": waiting} if waiting else {})}  # type: ignore[typeddict-item]


def _score(child: Child) -> float:
    return child.node["score"] or 0.0


def passed_up(stats: StatsView, node_id: str, changed: Stats, visits: int, total: float) -> Stats:
    """Backpropagation: add rewards to every node from `node_id` up to the root, and close those below which nothing
    is open.

    Args:
        stats: Statistics before.
        node_id: Where the rewards were met.
        changed: Statistics that have changed already.
        visits: How many rewards.
        total: Their sum.
    """
    changed = dict(changed)
    for place in upwards(node_id):
        node = changed.get(place) or stats[place]
        kids = [f"{place}.{i}" for i in range(node["children"])]
        closed = all((changed.get(kid) or stats[kid])["closed"] for kid in kids if kid in changed or kid in stats)
        changed[place] = {**node, "visits": node["visits"] + visits, "total": node["total"] + total, "closed": closed}
    return changed
