"""A tree while it grows: what one super-step adds lies over what the state holds, until it is written."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from itertools import takewhile

from reflective_agents.nodes.step import Update
from reflective_agents.state.tree import (
    Lesson,
    LogEntry,
    NodeStats,
    SearchState,
    TreeNode,
    changes_of,
)
from reflective_agents.tree_search.base import over
from reflective_agents.tree_search.places import path


class Progress:
    """The tree, its statistics, its log and what else a run has come to.

    Attributes:
        tree: The nodes by id.
        stats: Their statistics.
        log: What was done in this super-step; `history` has what was done before, too.
        lessons: All lessons of the run.
        best: The node of the best answer.
        expansions: How many there were.
    """

    def __init__(self, state: SearchState) -> None:
        self._state = state
        self._stats: dict[str, NodeStats] = {}
        self._keys: dict[str, str] = {}
        self._nodes: dict[str, TreeNode] = {}
        self.tree: ChainMap[str, TreeNode] = ChainMap(self._nodes, state["tree"])
        self.stats = over(self._stats, state["stats"])
        self.log: list[LogEntry] = []
        self.lessons: list[Lesson] = list(state["lessons"])
        self.best: str | None = state["best"]
        self.expansions: int = state["expansions"]

    @property
    def history(self) -> Sequence[LogEntry]:
        """The whole log of the run."""
        return [*self._state["log"], *self.log]

    def first_in(self, key: str) -> TreeNode | None:
        """Return the node that was the first in a state of the world, by the state's key."""
        node = self._keys.get(key) or self._state["values"].get(key)
        return self.tree.get(node) if node else None

    def remember(self, keys: Mapping[str, str]) -> None:
        """Remember which nodes were the first in states of the world."""
        self._keys.update({key: node for key, node in keys.items() if not self.first_in(key)})

    def paths(self, nodes: Sequence[str]) -> tuple[list[TreeNode], list[list[TreeNode]]]:
        """Return the nodes that the paths to all `nodes` begin with, and what is left of each path."""
        paths = [path(self.tree, node) for node in nodes]
        levels = zip(*([node["id"] for node in steps[:-1]] for steps in paths), strict=False)
        shared = sum(1 for _ in takewhile(lambda ids: len(set(ids)) == 1, levels))
        return paths[0][:shared], [steps[shared:] for steps in paths]

    def update(self) -> Update:
        """Return the update of the state."""
        added: Update = {
            "tree": {key: self._news(node) for key, node in self._nodes.items()},
            "stats": changes_of(self._stats, self._state["stats"]),
            "log": self.log,
            "values": self._keys,
            "lessons": self.lessons[len(self._state["lessons"]) :],
        }
        update = {name: new for name, new in added.items() if new} | {"expansions": self.expansions}
        return update | ({"best": self.best} if self.best != self._state["best"] else {})

    def _news(self, node: TreeNode) -> Mapping[str, object]:
        """Return what is new of a node: all of it, or what it has gained if it is stored already."""
        stored: Mapping[str, object] = self._state["tree"].get(node["id"], {})
        return {key: entry for key, entry in node.items() if key not in stored or stored[key] != entry}
