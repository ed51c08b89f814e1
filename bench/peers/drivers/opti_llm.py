"""optillm: its MCTS with 10 simulations, or its best of 50; the functions that its proxy calls."""

from importlib import import_module
from typing import Any

SYSTEM = "Answer the question."
SIMULATIONS, CANDIDATES = 10, 50


class Search:
    """The setting is "mcts" or "bon"."""

    def __init__(self, setting: str) -> None:
        self._search = {"mcts": self._mcts, "bon": self._best_of_n}[setting]
        self._client = import_module("openai").OpenAI()

    def run(self, question: str) -> None:
        """Search."""
        self._mcts_of_run: Any = None
        self._search(question)

    def root(self) -> Any:
        """Return the root: the question; best of n has no tree."""
        return self._mcts_of_run and self._mcts_of_run.root

    def _mcts(self, question: str) -> None:
        library = import_module("optillm.mcts")  # `chat_with_mcts` does the same with the tree in a local variable
        self._mcts_of_run = library.MCTS(1, exploration_weight=0.2, client=self._client, model="bench")
        self._mcts_of_run.search(library.DialogueState(SYSTEM, [], question), SIMULATIONS)

    def _best_of_n(self, question: str) -> None:
        import_module("optillm.bon").best_of_n_sampling(SYSTEM, question, self._client, "bench", n=CANDIDATES)
