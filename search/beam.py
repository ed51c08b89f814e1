"""Breadth-first search with a beam (Tree of Thoughts, algorithm 1): level by level, the best few of each go on."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from search.base import ROOT, Child, Job, children, leaf, parent_of, upwards
from search.mcts import passed_up
from state.tree import NodeStats, Stats, StatsView, TreeNode


@dataclass(frozen=True)
class Beam:
    """The search.

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
        level = _level(stats)
        for node in level:
            if not (_expanded(stats[node]) or stats[node].get("flight")):
                return Job(node=node, kind="expand", first=0, width=self.width)
        waiting = self._unjudged(stats) if not stats[ROOT].get("flight") else []
        return Job(node=ROOT, kind="judge", first=0, width=len(waiting), nodes=waiting) if waiting else None

    def _unjudged(self, stats: StatsView) -> list[str]:
        """The nodes that have to be judged together, if all of them are there."""
        if not self.compares or not all(_expanded(stats[node]) for node in _level(stats)):
            return []
        return [node for node in _next_level(stats) if not stats[node]["visits"]]

    def learn(self, stats: StatsView, job: Job, new: Sequence[Child]) -> Stats:
        """Take in children or their grades, and choose the next beam if the level is complete."""
        judges = job["kind"] == "judge"
        if not judges and _expanded(stats[str(job["node"])]):
            return {}
        changed = self._graded(stats, new) if judges else self._added(stats, str(job["node"]), new)
        seen: ChainMap[str, NodeStats] = ChainMap(changed, stats)  # type: ignore[arg-type]
        complete = all(_expanded(seen[node]) for node in _level(seen))
        return self._select(seen) if complete and (judges or not self._unjudged(seen)) else changed

    def _added(self, stats: StatsView, node: str, new: Sequence[Child]) -> Stats:
        changed: Stats = {node: {**stats[node], "children": len(new)}}
        for child in new:
            stat = {**leaf(child), "closed": not child.expandable} if self.compares else leaf(child)
            changed[child.node["id"]] = {**stat, "key": child.key} if child.key else stat
        rewards = [changed[child.node["id"]] for child in new if child.node["score"] is not None]
        return passed_up(stats, node, changed, len(rewards), sum(stat["total"] for stat in rewards))

    def _graded(self, stats: StatsView, judged: Sequence[Child]) -> Stats:
        changed: Stats = {}
        for child in judged:
            node, score = child.node["id"], child.node["score"]
            if score is not None:
                changed[node] = {**stats[node], "visits": 1, "total": score, "closed": not child.expandable}
                changed = passed_up(stats, str(parent_of(node)), changed, 1, score)
        return changed

    def _select(self, stats: ChainMap[str, NodeStats]) -> Stats:
        """Choose the beam of the next level: the best by score, the first of equals, each state of the world once."""
        level, found = _level(stats), _next_level(stats)
        beam: list[str] = []
        states: set[str] = set()
        for node in sorted(found, key=lambda node: -stats[node]["total"]):
            state = stats[node].get("key") or node
            if len(beam) < self.beam and stats[node]["visits"] and state not in states:
                beam.append(node)
                states.add(state)
        for node in found:
            kept = cast(NodeStats, {name: entry for name, entry in stats[node].items() if name != "key"})
            stats[node] = kept if node in beam else {**kept, "closed": True, "pruned": True}
        changed = dict(stats.maps[0])
        for node in level:
            changed = passed_up(stats.parents, node, changed, 0, 0.0)
        root: NodeStats = {**changed[ROOT], "frontier": beam}
        return {**changed, ROOT: root}


def _level(stats: StatsView) -> list[str]:
    """The nodes that are being expanded, the best first."""
    return stats[ROOT].get("frontier", [ROOT])


def _next_level(stats: StatsView) -> list[str]:
    """The children of those nodes, in order."""
    return [child for node in _level(stats) for child in children(stats, node)]


def _expanded(node: NodeStats) -> bool:
    return node["closed"] or node["children"] > 0


def by_beam(tree: Mapping[str, TreeNode], node: TreeNode) -> Any:
    """The order of answers: solved, then by score, the shallowest, and those whose parents stood first in the beam."""
    scores = [tree[place]["score"] for place in upwards(node["id"])]
    own, *above = [-1.0 if score is None else score for score in scores]
    places = [int(part) for part in node["id"].split(".")]
    return not node["solved"], -own, node["depth"], [-score for score in above], places
