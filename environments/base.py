"""What an environment is. A new one is one file with one class that fulfils `Environment`; nothing registers it.

An example, whole: a game in which a number is guessed.

    from environments.base import State, Task, Transition, over, refuse

    class Guess:
        name = "guess"
        actions = "a whole number, such as 7"

        def start(self, task: Task) -> State:
            return {"task": task, "answer": "", "done": False}

        def public(self, state: State) -> str:
            return f"Guess the number. Last guess: {state['answer'] or 'none'}"

        def answer(self, state: State) -> str:
            return str(state["answer"])

        def key(self, state: State) -> str:
            return self.answer(state)

        async def step(self, state: State, action: str) -> Transition:
            if state["done"]:
                return over(state)
            guess = self.same(action)
            if not guess.isdecimal():
                return refuse(state, f"{action!r} is no whole number.", self.actions)
            secret = int(state["task"]["gold"])
            done = int(guess) == secret
            hint = "That is it." if done else "Higher." if int(guess) < secret else "Lower."
            return Transition({**state, "answer": guess, "done": done}, hint, 1.0 if done else None, done)

        def same(self, action: str) -> str:
            return action.strip().lstrip("0") or "0"

        def score(self, task: Task, answer: str) -> dict[str, float]:
            return {"solved": float(self.same(answer) == task["gold"])}
"""

from typing import Any, NamedTuple, NotRequired, Protocol, TypeAlias

from typing_extensions import TypedDict

State: TypeAlias = dict[str, Any]
"""Where a task stands: plain JSON data, complete, and never changed in place: a search may branch anywhere.

Each has at least "task" and "done". Whatever `step` may change lies beside "task", and "task" is the task as it was
given: so many states may be kept without it, and each is whole again as `{**kept, "task": task}`.
"""


class Task(TypedDict):
    """One task of an environment, as plain data."""

    id: str
    """Unique within the data set."""
    question: str
    """What is asked; what the environment makes of it, its class says."""
    gold: NotRequired[str]
    """The right answer. `step` looks at it when a task ends, `score` outside a run, and nobody else."""
    data: NotRequired[dict[str, Any]]
    """Whatever else belongs to the task: paragraphs, clues."""


class Transition(NamedTuple):
    """What comes of an action."""

    state: State
    """The new state; the old one, unchanged, if the action was refused."""
    observation: str
    """What the agent is told. It never holds the right answer, unless a document does."""
    reward: float | None = None
    """From 0 to 1 once the task is decided; None before, and for a task whose right answer is not known."""
    done: bool = False
    """Whether the task has ended."""
    valid: bool = True
    """False if the action could not be read, or is not allowed in this state."""


class Environment(Protocol):
    """A kind of tasks, and the rules by which actions change their state. Holds no state of a run itself."""

    name: str
    """Short and unique, such as "questions"; the same as in `environments.registry`."""
    actions: str
    """The actions that are allowed, on one line, for prompts and for the observation after a refused one."""

    def start(self, task: Task) -> State:
        """Return the state before the first action. Raises `Misuse` if the task is of another kind."""
        ...

    def public(self, state: State) -> str:
        """Return what a prompt may show of a state: all that the agent may know, and never the right answer."""
        ...

    def answer(self, state: State) -> str:
        """Return the answer that a state holds; empty while there is none."""
        ...

    def key(self, state: State) -> str:
        """Return what a state is worth depends on: states of one task with one key are worth the same.

        Empty where a state is worth what its whole history is worth.
        """
        ...

    async def step(self, state: State, action: str) -> Transition:
        """Apply one action. What is wrong with an action, or fails, is told in the observation.

        Raises `Misuse` only for what no other action could mend, such as a missing sandbox.
        """
        ...

    def same(self, action: str) -> str:
        """Return the canonical form of an action: two that come to the same have the same one. Takes any text."""
        ...

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Measure an answer outside a run, each figure from 0 to 1; empty if the right answer is not known."""
        ...


def refuse(state: State, why: str, actions: str) -> Transition:
    """Refuse an action: say why and what is allowed, and leave everything as it was."""
    return Transition(state, f"{why} Legal actions: {actions}.", done=bool(state["done"]), valid=False)


def over(state: State) -> Transition:
    """Refuse an action because the task has ended."""
    return Transition(state, "The task has ended; no action is left.", done=True, valid=False)
