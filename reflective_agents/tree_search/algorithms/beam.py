"""Breadth-first search with a beam (Tree of Thoughts, algorithm 1): level by level, the best few of each go on."""

from collections.abc import Sequence
from dataclasses import dataclass

from reflective_agents.state.tree import NodeStats, Stats, StatsView, TreeNode, TreeView
from reflective_agents.tree_search.algorithms.mcts import backpropagate
from reflective_agents.tree_search.base import (
    Algorithm,
    Child,
    Job,
    get_extra,
    is_pruned,
    leaf,
    overlay,
    scores_of,
    with_extra,
)
from reflective_agents.tree_search.tree_paths import ROOT, Rank, child_indices, children, parent_of, upwards


@dataclass(frozen=True)
class Beam(Algorithm):
    """Breadth-first search with a beam.

    Attributes:
        width: Children asked for at each node.
        beam: How many nodes of a level are expanded, b.
        compares: Whether the nodes of a level are judged together, once all of them are there.
    """

    width: int = 5
    beam: int = 1
    compares: bool = False

    def choose(self, stats: StatsView) -> Job | None:
        """Expand the nodes of the beam, all at once if they may be; then have their children judged together."""
        for node in _level(stats):
            if not (_expanded(stats[node]) or stats[node].get("flight")):
                return Job(node=node, kind="expand", first=0, width=self.width)
        if stats[ROOT].get("flight"):
            return None
        waiting = self._unjudged(stats)
        if not waiting:
            return None
        return Job(node=ROOT, kind="judge", first=0, width=len(waiting), nodes=waiting)

    def _unjudged(self, stats: StatsView) -> list[str]:
        """Return the nodes of the next level, which are judged together, if it is complete and not judged yet."""
        if not self.compares or not _is_complete(stats):
            return []
        return [node for node in _next_level(stats) if not (stats[node]["visits"] or is_pruned(stats[node]))]

    def prune(self, stats: StatsView, node: str) -> Stats:
        """Close a node and all below, and choose the next beam if the level is complete with that."""
        changed = super().prune(stats, node)
        current = overlay(changed, stats)
        may_select = _is_complete(current) and _next_level(current) and not self._unjudged(current)
        return self._select(stats, changed) if may_select else changed

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Take in children or their grades, and choose the next beam if the level is complete."""
        judges = job["kind"] == "judge"
        if not judges and _expanded(stats[job["node"]]):
            return {}
        changed = self._with_grades(stats, new) if judges else self._with_children(stats, job["node"], new)
        current = overlay(changed, stats)
        may_select = _is_complete(current) and (judges or not self._unjudged(current))
        return self._select(stats, changed) if may_select else changed

    def _with_children(self, stats: StatsView, node: str, new: Sequence[Child]) -> Stats:
        changed: Stats = {node: {**stats[node], "children": len(new)}}
        for child in new:
            stat = leaf(child)
            if self.compares:  # its judgement is still to come
                stat["closed"] = not child.expandable
            changed[child.node["id"]] = with_extra(stat, key=child.key or None)
        rewards = scores_of(new)
        return backpropagate(stats, node, changed, len(rewards), sum(rewards))

    def _with_grades(self, stats: StatsView, judged: Sequence[Child]) -> Stats:
        changed: Stats = {}
        for child in judged:
            node, score = child.node["id"], child.node["score"]
            if score is not None:
                changed[node] = {**stats[node], "visits": 1, "total": score, "closed": not child.expandable}
                changed = backpropagate(stats, str(parent_of(node)), changed, 1, score)
        return changed

    def _select(self, stats: StatsView, changed: Stats) -> Stats:
        """Choose the beam of the next level: the best by score, the first of equals, each state once."""
        current = overlay(changed, stats)
        level = _level(current)
        candidates = _next_level(current)
        beam: dict[str, str] = {}  # by the state
        for node in sorted(candidates, key=lambda node: -current[node]["total"]):
            stat = current[node]
            state = get_extra(stat, "key", "") or node
            if len(beam) < self.beam and stat["visits"] and not is_pruned(stat):
                beam.setdefault(state, node)
        chosen = list(beam.values())
        for node in candidates:
            stat = with_extra(current[node], key=None)
            if node not in chosen:
                stat = with_extra({**stat, "closed": True}, pruned=True)
            current[node] = stat
        for node in level:
            changed = backpropagate(stats, node, changed, 0, 0.0)
        return {**changed, ROOT: with_extra(changed[ROOT], frontier=chosen)}

    def rank(self, tree: TreeView, node: TreeNode) -> Rank:
        """Sort answers: solved, then by score, the shallowest, and those whose parents stood first in the beam."""
        scores: list[float] = []
        for key in upwards(node["id"]):
            score = tree[key]["score"]
            scores.append(1.0 if score is None else -score)
        own, *above = scores
        return (not node["solved"], own, node["depth"], *above, *child_indices(node["id"]))


def _level(stats: StatsView) -> list[str]:
    """Return the nodes that are being expanded, best first."""
    return get_extra(stats[ROOT], "frontier", [ROOT])


def _is_complete(stats: StatsView) -> bool:
    """Tell whether all nodes of the level are expanded."""
    return all(_expanded(stats[node]) for node in _level(stats))


def _next_level(stats: StatsView) -> list[str]:
    """Return the children of the nodes that are being expanded, in order."""
    level: list[str] = []
    for node in _level(stats):
        level += children(stats, node)
    return level


def _expanded(node: NodeStats) -> bool:
    return node["closed"] or node["children"] > 0
