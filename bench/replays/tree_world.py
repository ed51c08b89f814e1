"""A world of which only a recorded search is left: what an action brought, by the actions that led to it."""

from collections.abc import Mapping
from typing import NamedTuple

from reflective_agents.environments.base import State, Task, Transition

Path = tuple[str, ...]
"""Actions from the beginning on, each in its canonical form."""


def canonical(action: str) -> str:
    """Return an action with single blanks."""
    return " ".join(action.split())


class Outcome(NamedTuple):
    """What an action brought.

    `reward` is the task's, once it is decided, and then `done` is set; `valid` is False for what was refused.
    """

    observation: str
    reward: float | None = None
    done: bool = False
    valid: bool = True


class TreeWorld:
    """An environment that knows the outcomes of a record and no others: a miss is an error that is remembered.

    A refused action lengthens the path like any other, because the recorded searches went on from there.
    """

    def __init__(self, name: str, actions: str, outcomes: Mapping[Path, Outcome]) -> None:
        """Choose the name, what the actions are called, and the outcomes."""
        self.name, self.actions = name, actions
        self._outcomes = {tuple(map(canonical, path)): outcome for path, outcome in outcomes.items()}
        self._served: set[Path] = set()
        self.misses: list[Path] = []

    @property
    def unserved(self) -> list[Path]:
        """Paths that were never gone."""
        return [path for path in self._outcomes if path not in self._served]

    def start(self, task: Task) -> State:
        """Begin a task, without any action."""
        return {"task": task, "acts": [], "observation": "", "done": False}

    def public(self, state: State) -> str:
        """Return what is asked, and what was seen last."""
        return "\n".join(filter(None, [state["task"]["question"], state["observation"]]))

    def answer(self, state: State) -> str:
        """Return the actions that ended the task, one a line; empty before."""
        return "\n".join(state["acts"]) if state["done"] else ""

    def key(self, state: State) -> str:
        """Return nothing: the record does not say which pages are the same."""
        return ""

    async def step(self, state: State, action: str) -> Transition:
        """Serve what the record says.

        Raises:
            LookupError: if it says nothing of this action here.
        """
        path = (*state["acts"], self.canonical(action))
        if path not in self._outcomes:
            self.misses.append(path)
            raise LookupError(f"nothing is recorded for {path}")
        self._served.add(path)
        observation, reward, done, valid = self._outcomes[path]
        new = {**state, "acts": [*path], "observation": observation, "done": done}
        return Transition(new, observation, reward, done, valid)

    def canonical(self, action: str) -> str:
        """Return the action with single blanks."""
        return canonical(action)

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return the recorded reward of the actions that an answer lists; 0 if they did not end the task."""
        ended = self._outcomes.get(tuple(answer.split("\n")))
        return {"reward": ended.reward or 0.0 if ended and ended.done else 0.0}
