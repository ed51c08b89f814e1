"""A tree while it grows: what one super-step adds is laid over the state, until it is written."""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from reflective_agents.nodes.step import Update
from reflective_agents.state.tree import Lesson, LogEntry, NodeStats, SearchState, TreeNode, changes_of
from reflective_agents.tree_search.base import Algorithm, overlay
from reflective_agents.tree_search.candidates import is_answer_key
from reflective_agents.tree_search.known_answers import known_answers
from reflective_agents.tree_search.tree_paths import path


class Progress:
    """The tree of a run, with its statistics and log.

    Attributes:
        tree: The nodes by id.
        stats: Their statistics by id.
        log: What was done in this super-step.
        lessons: All lessons of the run.
        best: The id of the node with the best answer.
        guess: The last answer that followed an action, before its result was known.
        expansions: How many expansions were made.
    """

    def __init__(self, state: SearchState) -> None:
        self._state = state
        self._stats: dict[str, NodeStats] = {}
        self._keys: dict[str, str] = {}
        self._nodes: dict[str, TreeNode] = {}
        self.tree: ChainMap[str, TreeNode] = ChainMap(self._nodes, state["tree"])
        self.stats = overlay(self._stats, state["stats"])
        self.log: list[LogEntry] = []
        self.lessons: list[Lesson] = list(state["lessons"])
        self.best: str | None = state["best"]
        self.guess: str | None = state.get("guess")
        self.expansions: int = state["expansions"]

    @property
    def history(self) -> Sequence[LogEntry]:
        """The whole log of the run."""
        return [*self._state["log"], *self.log]

    def node_by_state(self, key: str) -> TreeNode | None:
        """Return the first node in a state, by the state's key."""
        node = self._keys.get(key) or self._state["values"].get(key) or self._answers.get(key)
        return self.tree.get(node) if node else None

    @cached_property
    def _answers(self) -> Mapping[str, str]:
        return known_answers(self._state["run_id"]).first_nodes(self._state["tree"])

    def remember(self, keys: Mapping[str, str]) -> None:
        """Remember the first node in each state, by the state's key; not one that was merged into another."""
        for key, node in keys.items():
            if node in self.tree and not self.node_by_state(key):
                self._keys[key] = node

    def paths(self, nodes: Sequence[str]) -> tuple[list[TreeNode], list[list[TreeNode]]]:
        """Return the nodes that all paths to `nodes` have in common, and the rest of each path."""
        paths = [path(self.tree, node) for node in nodes]
        above = [steps[:-1] for steps in paths]
        shared = 0
        for level in zip(*above, strict=False):
            ids = {node["id"] for node in level}
            if len(ids) > 1:
                break
            shared += 1
        return paths[0][:shared], [steps[shared:] for steps in paths]

    def choose_best(self, nodes: Iterable[TreeNode], algorithm: Algorithm) -> TreeNode | None:
        """Choose the best answer among nodes; None if none of them is an answer."""
        answers = [node for node in nodes if node["kind"] == "answer"]
        best = min(answers, key=lambda node: algorithm.rank(self.tree, node), default=None)
        self.best = best["id"] if best else None
        return best

    def update(self) -> Update:
        """Return the update of the state."""
        changed_nodes = {key: self._changes(node) for key, node in self._nodes.items()}
        first_by_state = {key: node for key, node in self._keys.items() if not is_answer_key(key)}
        added: Update = {
            "tree": changed_nodes,
            "stats": changes_of(self._stats, self._state["stats"]),
            "log": self.log,
            "values": first_by_state,
            "lessons": self.lessons[len(self._state["lessons"]) :],
        }
        update: Update = {name: new for name, new in added.items() if new}
        update["expansions"] = self.expansions
        if self.best != self._state.get("best"):
            update["best"] = self.best
        if self.guess != self._state.get("guess"):
            update["guess"] = self.guess
        return update

    def _changes(self, node: TreeNode) -> Mapping[str, object]:
        """Return the entries of a node that are not stored yet."""
        stored: Mapping[str, object] = self._state["tree"].get(node["id"], {})
        changed = {key: entry for key, entry in node.items() if key not in stored or stored[key] != entry}
        if changed and node.get("rescored"):
            changed["rescored"] = True  # which lets a person's second score take the place of the first
        return changed
