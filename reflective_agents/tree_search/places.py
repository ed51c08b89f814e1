"""Places in a tree: an id says where a node stands, `0` is the root and `0.3.1` the second child of its fourth."""

from collections.abc import Iterator

from reflective_agents.state.tree import StatsView, TreeNode, TreeView

ROOT = "0"
EXACT = 2**30
"""Scores are rounded to multiples of 1/EXACT, so that their sums are exact and the order of addition does not matter.
"""
Rank = tuple[float, ...]
"""What nodes are sorted by, the best first."""


def children(stats: StatsView, node_id: str) -> list[str]:
    """Return the ids of a node's children, in order."""
    ids = (f"{node_id}.{i}" for i in range(stats[node_id]["children"]))
    return [child for child in ids if child in stats]


def parent_of(node_id: str) -> str | None:
    """Return the id of a node's parent, which its own id begins with; None for the root."""
    return node_id.rpartition(".")[0] or None


def upwards(node_id: str) -> Iterator[str]:
    """Yield the ids from a node up to the root, both included."""
    current: str | None = node_id
    while current:
        yield current
        current = parent_of(current)


def is_below(node_id: str, above: str) -> bool:
    """Tell whether a node is another one, or lies below it."""
    return node_id == above or node_id.startswith(f"{above}.")


def standing(tree: TreeView) -> list[TreeNode]:
    """Return the nodes that no person has given up, themselves or above them."""
    pruned = [key for key, node in tree.items() if node.get("pruned")]
    return [node for key, node in tree.items() if not any(is_below(key, above) for above in pruned)]


def path(tree: TreeView, node_id: str) -> list[TreeNode]:
    """Return the nodes from the root down to `node_id`, both included."""
    return [tree[place] for place in upwards(node_id)][::-1]


def depth_of(node_id: str) -> int:
    """Return how deep a node lies; 0 for the root."""
    return node_id.count(".")


def order_of(node_id: str) -> list[int]:
    """Return what nodes are sorted by where nothing else decides: their places, from left to right."""
    return [int(part) for part in node_id.split(".")]


def exact(score: float) -> float:
    """Round a score so that sums of scores are exact."""
    return round(score * EXACT) / EXACT


def best_answer(tree: TreeView) -> TreeNode | None:
    """Return the best answer, wherever it stands: solved ones first, then by score, then the shallowest and first."""
    return min((node for node in standing(tree) if node["kind"] == "answer"), key=rank, default=None)


def best_step(tree: TreeView) -> TreeNode | None:
    """Return the best node of any kind; None in an empty tree."""
    return min(standing(tree), key=rank, default=None)


def rank(node: TreeNode) -> Rank:
    """Return what answers are sorted by, the best first: solved, score, depth, place."""
    score = -1.0 if node["score"] is None else node["score"]
    return (not node["solved"], -score, node["depth"], *order_of(node["id"]))
