"""Which node was the first with an answer to an open question. This follows from the tree, so it is not stored."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import takewhile

from reflective_agents.state.tree import Tree, TreeNode
from reflective_agents.tree_search.candidates import answer_key


class KnownAnswers:
    """The first node of each answer in a tree that grows. Only what has been added since the last look is read."""

    def __init__(self) -> None:
        self._read: tuple[dict[str, str], TreeNode | None] = {}, None
        """The first nodes, and the last that was read: replaced at once, since a fork may go on in another thread."""

    def first_nodes(self, tree: Tree) -> Mapping[str, str]:
        """Return the id of the first node of each answer, by the answer's key.

        Args:
            tree: The tree of the run. One that does not continue the last, as after a fork, is read from its beginning.
        """
        first, last = self._read
        added = list(takewhile(lambda node: node is not last, reversed(tree.values())))
        if len(added) == len(tree):
            first = {}
        for node in reversed(added):
            if node["kind"] == "answer" and node["messages"]:
                first.setdefault(_key_of(node), node["id"])
            last = node
        self._read = first, last
        return first


def _key_of(node: TreeNode) -> str:
    text = node["messages"][0].text
    return answer_key(text, node.get("checked", ""), unfounded=node.get("unfounded", False))


@lru_cache(maxsize=64)
def known_answers(run_id: str) -> KnownAnswers:
    """Return what is known of the answers of a run in this process; a run that is resumed elsewhere begins anew."""
    return KnownAnswers()
