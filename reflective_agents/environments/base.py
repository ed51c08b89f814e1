'''What an environment is. A new one is one file with one class derived from `Environment`; nothing registers it:
every strategy takes the object as a setting, `context={"environment": Guess()}`.

An example, whole: a game in which a number is guessed.

    from reflective_agents.environments.base import Environment, State, Task, Transition, over, refuse

    class Guess(Environment):
        """The number is the task's `gold`."""

        name = "guess"
        actions = "a whole number, such as 7"
        goal = "Guess the secret whole number."
        effects = "After each guess you are told whether the secret is higher or lower."
        needs_gold = True

        def public(self, state: State) -> str:
            return f"Guess the number. Last guess: {state['answer'] or 'none'}"

        def key(self, state: State) -> str:
            return self.answer(state)

        async def step(self, state: State, action: str) -> Transition:
            if state["done"]:
                return over(state)
            guess = self.same(action)
            if not guess.isdecimal():
                return refuse(state, f"{action!r} is not a whole number.", self.actions)
            secret = int(state["task"]["gold"])
            done = int(guess) == secret
            hint = "That is it." if done else "Higher." if int(guess) < secret else "Lower."
            return Transition({**state, "answer": guess, "done": done}, hint, 1.0 if done else None, done)

        def same(self, action: str) -> str:
            return action.strip().lstrip("0") or "0"
'''

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, NotRequired, Self, TypeAlias

from typing_extensions import TypedDict

from reflective_agents.environments.actions import find_answer
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.outcome import Verifier
from reflective_agents.text.clean import clean, clean_data
from reflective_agents.text.normal import normal_form

State: TypeAlias = JsonObject
"""Where a task stands: plain JSON data, complete, and never changed in place: a search may branch anywhere.

Each has at least "task" and "done". Whatever `step` may change lies beside "task", and "task" is the task as it was
given: so many states may be kept without it, and each is whole again as `{**kept, "task": task}`.
"""

Presets: TypeAlias = Mapping[str, Mapping[str, str | int | float | bool]]
"""Settings by name, by the name of a strategy."""

BRIEF = "Give the answer alone, as short as it can be, without an explanation."
"""What a strategy that knows no environments is told about its answer."""


class Task(TypedDict):
    """One task of an environment, as plain data."""

    id: str
    """Unique within the data set."""
    question: str
    """What is asked; what the environment makes of it, its class says."""
    gold: NotRequired[str]
    """The right answer. `step` looks at it when a task ends, `score` outside a run, and nobody else."""
    data: NotRequired[JsonObject]
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


class Act(NamedTuple):
    """One step of a worked example."""

    thought: str
    action: str
    observation: str = ""
    """Empty for the action that ends the task."""


class Example(NamedTuple):
    """A worked example for prompts: a task, and how it is solved, or how a try at it fails."""

    task: str
    """The task as `Environment.public` shows it."""
    acts: tuple[Act, ...] = ()
    """The steps of an agent that acts; empty if the example shows none."""
    reasoning: str = ""
    """The same thought out at once, ending in `Environment.answer_form`; empty if the example does not show it."""
    solved: bool = True
    why: str = ""
    """Why the try has failed, in a sentence; empty if it has not."""


class Environment(ABC):
    """A kind of tasks, and the rules by which actions change their state. Holds no state of a run itself.

    What must be there is `name`, `actions` and `step`. Everything else has a default that fits an environment in which
    an answer is one action, and which is worth what its score says.
    """

    name: str
    """Short and unique, such as "questions"."""
    actions: str
    """The actions that are allowed, on one line, for prompts and for the observation after a refused one."""
    goal: str = ""
    """What is wanted, in words for somebody who does not know the game."""
    rules: str = ""
    """What an answer has to fulfil, whoever gives it; empty if `goal` says it all."""
    effects: str = ""
    """What the actions do, for whoever acts; empty if `actions` says it all."""
    examples: Sequence[Example] = ()
    """Two to four worked examples, a failed try among them."""
    answer_form: str = "End with a line 'Answer: ...' that holds the answer alone, as short as possible."
    """What a model is told about how to give the answer at the end of a text."""
    figure: str = "solved"
    """The figure of `score` that is 1 for a correct answer."""
    verifier: Verifier = "environment"
    """What a reward of 1 says has verified the answer."""
    scores_by_data: bool = False
    """Whether `score` needs the task's `data`, not just its question and its right answer."""
    presets: ClassVar[Presets] = {}
    """Settings that suit these tasks, by the name of the strategy; whatever a user sets comes before them."""
    multiline: bool = False
    """Whether one action is a text of many lines, so that no list of actions can be asked for."""
    needs_gold: bool = False
    """Whether `step` cannot do without the task's right answer, which a tree search else leaves out of the task so that
    it is not steered by it."""
    by_subquestions: bool = False
    """Whether a task is a question that smaller questions lead to, rather than a plan of actions."""

    @classmethod
    def from_settings(cls, docstore: str | None, unsafe_code: bool) -> Self:
        """Make the environment for the settings `docstore` and `unsafe_code`, if they mean anything to it."""
        return cls()

    # A task as it goes on

    def start(self, task: Task) -> State:
        """Return the state before the first action. Raises `Misuse` if the task is of another kind."""
        return {"task": task, "answer": "", "done": False}

    def public(self, state: State) -> str:
        """Return what a prompt may show of a state: all that the agent may know, and never the right answer."""
        return str(state["task"]["question"])

    def answer(self, state: State) -> str:
        """Return the answer that a state holds; empty while there is none."""
        return str(state["answer"])

    def key(self, state: State) -> str:
        """Return what a state is worth depends on: states of one task with one key are worth the same.

        Empty where a state is worth what its whole history is worth.
        """
        return ""

    @abstractmethod
    async def step(self, state: State, action: str) -> Transition:
        """Apply one action. The observation says what is wrong with an action, or what failed.

        Raises `Misuse` only for what no other action could mend, such as a missing sandbox.
        """

    def legal_actions(self, state: State) -> list[str] | None:
        """Return every action that leads on from a state; None where they cannot be listed."""
        return None

    def same(self, action: str) -> str:
        """Return the canonical form of an action: two that come to the same have the same one. Takes any text."""
        return " ".join(action.casefold().split())

    # Answers

    def final_action(self, answer: str) -> str | None:
        """Return the action that gives an answer; None where an answer is built of many actions."""
        return answer

    def is_whole(self, state: State) -> bool:
        """Return whether a state holds an answer that could end a run, not a part of one."""
        return bool(self.answer(state)) and self.final_action("") is not None

    def settled(self, done: Transition) -> Transition:
        """Return a transition with the reward 0 if it gives a whole answer that leaves the task open: nothing is solved
        by it, should the run end here."""
        open_still = done.valid and not done.done and done.reward is None
        return done._replace(reward=0.0) if open_still and self.is_whole(done.state) else done

    def find_answer(self, text: str) -> str:
        """Return the answer that a model's text ends with; empty if there is none."""
        return find_answer(text)

    def normal(self, answer: str) -> str:
        """Return what equal answers have in common; empty for an answer that cannot be read."""
        return normal_form(answer)

    def vote(self, answer: str, question: str) -> str:
        """Return what the votes for one answer have in common, given the question; empty if it cannot be read."""
        return self.normal(answer)

    def equal(self, one: str, other: str) -> bool:
        """Return whether two answers are the same, and can be read."""
        return self.normal(one) == self.normal(other) != ""

    # Measuring

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Measure an answer outside a run, each figure from 0 to 1; empty if the right answer is not known."""
        gold = task.get("gold")
        return {} if gold is None else {self.figure: float(self.equal(answer, gold))}

    async def measure(self, task: Task, answer: str) -> dict[str, float]:
        """Return the same as `score`, for environments whose measuring takes a while."""
        return self.score(task, answer)

    def measurable(self, task: Task) -> bool:
        """Return whether an answer to a task can be called correct or not."""
        return "gold" in task

    def is_correct(self, scores: Mapping[str, float]) -> bool:
        """Return whether the scores are those of a correct answer."""
        return scores.get(self.figure) == 1

    def request(self, task: Task) -> str:
        """Return how a task is put to a strategy that knows no environments."""
        return "\n\n".join(filter(None, [self.goal, task["question"], BRIEF]))

    # What tasks need before they are run

    async def ready(self) -> None:  # noqa: B027 - most need nothing
        """Raise `Misuse` if no task can be run here, such as for want of a sandbox."""

    def advise(self, tasks: Sequence[Task]) -> str:
        """Return what whoever runs these tasks should know; empty if there is nothing."""
        return ""

    def wants_tests(self, task: Task) -> bool:
        """Return whether an agent has to write tests of its own to know how well it does."""
        return False

    def with_own_tests(self, task: Task, text: str, most: int) -> Task:
        """Return a task with up to `most` tests from a text that the agent has written."""
        return task


def refuse(state: State, why: str, actions: str) -> Transition:
    """Refuse an action: say why and what is allowed, and leave everything as it was."""
    return Transition(state, f"{why} Legal actions: {actions}.", done=bool(state["done"]), valid=False)


def over(state: State) -> Transition:
    """Refuse an action because the task has ended."""
    return Transition(state, "The task has ended; no action is left.", done=True, valid=False)


class Cleaned(Environment):
    """An environment of the user's, whose texts are fit to be stored and sent. What it lacks is as in `Environment`.

    Args:
        inner: The environment. It need not be derived from `Environment`.
    """

    needs_gold = True  # an environment that does not say may need it

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute of the inner environment, or a method whose text is cleaned."""
        if name in ("start", "step") or name.startswith("_") or not hasattr(self._inner, name):
            return super().__getattribute__(name)
        value = getattr(self._inner, name)
        return partial(_call_cleanly, value) if callable(value) else clean_data(value)

    def start(self, task: Task) -> State:
        """Return the state before the first action."""
        start = getattr(self._inner, "start", super().start)
        return clean_data(start(task))

    async def step(self, state: State, action: str) -> Transition:
        """Apply one action. The task is left as it is: it was cleaned at the start."""
        done: Transition = await self._inner.step(state, action)
        kept = {name: part if name == "task" else clean_data(part) for name, part in done.state.items()}
        return done._replace(state=kept, observation=clean(done.observation))


def _call_cleanly(method: Callable[..., Any], *args: Any) -> Any:
    result = method(*args)
    return clean_data(result) if isinstance(result, str | list) else result


def cleaned(environment: Any) -> Environment:
    """Return an environment of the user's with clean texts; one that has them already as it is."""
    return environment if isinstance(environment, Cleaned) else Cleaned(environment)
