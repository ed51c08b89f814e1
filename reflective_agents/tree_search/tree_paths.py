"""Paths in a tree: `0` is the id of the root, and `0.3.1` that of the second child of the root's fourth child."""

from collections.abc import Iterator

from reflective_agents.state.tree import StatsView, TreeNode, TreeView

ROOT = "0"
SCORE_STEPS = 2**30
"""Scores are rounded to multiples of 1/SCORE_STEPS: their sums are exact, and the order of addition does not matter."""
Rank = tuple[float, ...]
"""What nodes are sorted by, the best first."""


def children(stats: StatsView, node_id: str) -> list[str]:
    """Return the ids of a node's children, in order."""
    ids = (f"{node_id}.{i}" for i in range(stats[node_id]["children"]))
    return [child for child in ids if child in stats]


def open_children(stats: StatsView, node_id: str) -> list[str]:
    """Return the ids of a node's children below which something can still be expanded, in order."""
    return [child for child in children(stats, node_id) if not stats[child]["closed"]]


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
    """Return whether a node is the node `above`, or lies below it."""
    return node_id == above or node_id.startswith(f"{above}.")


def unpruned(tree: TreeView) -> list[TreeNode]:
    """Return the nodes that no person has pruned, themselves or above them."""
    pruned = {key for key, node in tree.items() if node.get("pruned")}
    return [node for key, node in tree.items() if pruned.isdisjoint(upwards(key))]


def path(tree: TreeView, node_id: str) -> list[TreeNode]:
    """Return the nodes from the root down to `node_id`, both included."""
    return [tree[key] for key in upwards(node_id)][::-1]


def depth_of(node_id: str) -> int:
    """Return how deep a node lies; 0 for the root."""
    return node_id.count(".")


def child_indices(node_id: str) -> list[int]:
    """Return the index of each node on a path among its siblings: sorted by them, nodes lie from left to right."""
    return [int(part) for part in node_id.split(".")]


def round_score(score: float) -> float:
    """Round a score so that sums of scores are exact."""
    return round(score * SCORE_STEPS) / SCORE_STEPS


def best_answer(tree: TreeView) -> TreeNode | None:
    """Return the best answer: solved ones first, then by score, then the shallowest and first."""
    answers = [node for node in unpruned(tree) if node["kind"] == "answer"]
    return min(answers, key=rank, default=None)


def best_node(tree: TreeView) -> TreeNode | None:
    """Return the best node of any kind; None in an empty tree."""
    return min(unpruned(tree), key=rank, default=None)


def furthest_node(tree: TreeView) -> TreeNode | None:
    """Return the end of the trajectory that the last call is shown: of those with the best score, the one that has come
    furthest; None in an empty tree.

    A step without a score of its own has that of the last one before it. One that ended its task without an answer
    comes after those that are open.
    """

    def order(node: TreeNode) -> Rank:
        score = 0.0
        for key in upwards(node["id"]):
            own = tree[key]["score"]
            if own is not None:
                score = own
                break
        return (not node["solved"], -score, node.get("done", False), -node["depth"], *child_indices(node["id"]))

    return min(unpruned(tree), key=order, default=None)


def rank(node: TreeNode) -> Rank:
    """Return what answers are sorted by, the best first: solved, score, depth, and then from left to right."""
    score = -1.0 if node["score"] is None else node["score"]
    return (not node["solved"], -score, node["depth"], *child_indices(node["id"]))
