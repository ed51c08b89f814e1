"""TreeQuest: 50 nodes, each by one call for the answer and one for its score, as its generate function wants it."""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Lock
from typing import Any

BUDGET, WIDTH = 50, 5


class Search:
    """The loops of its documentation: `step`, or `ask_batch` with a thread for each trial.

    The setting names the algorithm and the trials in flight, for example "ABMCTSA 5".
    """

    def __init__(self, setting: str) -> None:
        name, batch = setting.split()
        settings = {"samples_per_action": WIDTH} if name == "StandardMCTS" else {}
        self._algorithm, self._batch = getattr(import_module("treequest"), name)(**settings), int(batch)
        self._client, self._counting = import_module("openai").OpenAI(), Lock()

    def run(self, question: str) -> None:
        """Search until the tree has all its nodes."""
        self._question, self._state, self.calls = question, self._algorithm.init_tree(), 0
        with ThreadPoolExecutor(self._batch) as pool:
            for _ in range(BUDGET // self._batch):
                self._grow(pool)

    def root(self) -> Any:
        """Return the root, which is empty."""
        return self._state.tree.root

    def _grow(self, pool: ThreadPoolExecutor) -> None:
        if self._batch == 1:
            self._state = self._algorithm.step(self._state, {"answer": self._generate})
            return
        self._state, trials = self._algorithm.ask_batch(self._state, self._batch, ["answer"])
        running = [pool.submit(self._generate, trial.parent_state) for trial in trials]
        for trial, answer in zip(trials, running, strict=True):
            self._state = self._algorithm.tell(self._state, trial.trial_id, answer.result())

    def _generate(self, parent: str | None) -> tuple[str, float]:
        answer = self._ask(f"{self._question}\nImprove this answer: {parent}" if parent else self._question)
        return answer, float(self._ask(f"{self._question}\nRate from 0 to 1, with only a number: {answer}"))

    def _ask(self, text: str) -> str:
        with self._counting:
            self.calls += 1
            seed = self.calls
        messages = [{"role": "user", "content": text}]
        reply = self._client.chat.completions.create(model="bench", messages=messages, seed=seed)
        return str(reply.choices[0].message.content)
