"""Monte Carlo tree search over plain data (LATS, section 4): select a leaf, tell its children, read the best answer.

Everything here is a pure function of the tree and its statistics. Children may be told in any order, and twice
without harm.
"""

import math
from collections.abc import Iterable

from state.tree import NodeStats, Stats, Tree, TreeNode

ROOT = "0"
EXACT = 2**30
"""Scores are rounded to multiples of 1/EXACT, so that their sums are exact and the order of addition does not matter.
"""


def children(stats: Stats, node_id: str) -> list[str]:
    """Ids of a node's children, in order."""
    return [f"{node_id}.{i}" for i in range(stats[node_id]["children"])]


def path(tree: Tree, node_id: str) -> list[TreeNode]:
    """The nodes from the root down to `node_id`, both included."""
    node: TreeNode | None = tree[node_id]
    nodes: list[TreeNode] = []
    while node is not None:
        nodes.append(node)
        node = tree[node["parent_id"]] if node["parent_id"] is not None else None
    return nodes[::-1]


def value(node: NodeStats) -> float:
    """Running mean of the rewards seen at and below a node, in 0..1; 0 before the first."""
    return node["total"] / node["visits"] if node["visits"] else 0.0


def uct(node: NodeStats, parent_visits: int, weight: float) -> float:
    """Upper confidence bound of a node: value + w * sqrt(ln N(parent) / N). Infinite before the first visit."""
    if not node["visits"]:
        return math.inf
    return value(node) + weight * math.sqrt(math.log(max(parent_visits, 1)) / node["visits"])


def select(stats: Stats, weight: float) -> str | None:
    """Walk from the root to a leaf, taking the open child with the highest UCT at each level (the first one of a tie).

    Returns:
        The id of the leaf to expand, or None if nothing is left that could be expanded.
    """
    if ROOT not in stats or stats[ROOT]["closed"]:
        return None
    node_id = ROOT
    while stats[node_id]["children"]:
        visits = stats[node_id]["visits"]
        open_children = [child for child in children(stats, node_id) if not stats[child]["closed"]]
        node_id = max(open_children, key=lambda child: uct(stats[child], visits, weight))
    return node_id


def tell(stats: Stats, parent_id: str | None, new: Iterable[tuple[TreeNode, bool]]) -> Stats:
    """Add the children that expanding `parent_id` has produced and backpropagate their scores.

    Args:
        stats: Statistics before the expansion.
        parent_id: The node that was expanded; None for the root itself.
        new: All children with whether each may be expanded. None at all closes the parent.

    Returns:
        The statistics that have changed; empty if this expansion had been told before.
    """
    if parent_id is not None and (stats[parent_id]["children"] or stats[parent_id]["closed"]):
        return {}
    added = {node["id"]: _leaf(node, expandable) for node, expandable in new if node["id"] not in stats}
    if parent_id is None:
        return added
    return added | _backpropagate(stats, parent_id, added)


def _leaf(node: TreeNode, expandable: bool) -> NodeStats:
    judged = node["score"] is not None
    return {"visits": int(judged), "total": node["score"] or 0.0, "children": 0, "closed": not (expandable and judged)}


def _backpropagate(stats: Stats, parent_id: str, added: Stats) -> Stats:
    visits = sum(leaf["visits"] for leaf in added.values())
    total = sum(leaf["total"] for leaf in added.values())
    parent = stats[parent_id]
    changed: Stats = {parent_id: {**parent, "children": len(added)}}
    current: str | None = parent_id
    while current is not None:
        node = changed.get(current) or stats[current]
        known = {**added, **changed}
        kids = [known.get(kid) or stats[kid] for kid in children({current: node}, current)]
        changed[current] = {
            **node,
            "visits": node["visits"] + visits,
            "total": node["total"] + total,
            "closed": all(kid["closed"] for kid in kids),
        }
        current = parent_of(current)
    return changed


def parent_of(node_id: str) -> str | None:
    """Id of a node's parent, which its own id begins with; None for the root."""
    return node_id.rpartition(".")[0] or None


def exact(score: float) -> float:
    """Round a score so that sums of scores are exact."""
    return round(score * EXACT) / EXACT


def best_answer(tree: Tree) -> TreeNode | None:
    """The best answer, wherever it stands: solved before unsolved, then by score, then the shallowest and first."""
    answers = [node for node in tree.values() if node["kind"] == "answer"]
    return min(answers, key=_rank, default=None)


def best_step(tree: Tree) -> TreeNode | None:
    """The best node of any kind; None in an empty tree."""
    return min(tree.values(), key=_rank, default=None)


def _rank(node: TreeNode) -> tuple[bool, float, int, list[int]]:
    score = -1.0 if node["score"] is None else node["score"]
    return not node["solved"], -score, node["depth"], [int(part) for part in node["id"].split(".")]
