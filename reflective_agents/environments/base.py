'''Environments: tasks, and the rules by which actions change them. A new one is one class derived from `Environment`.
Every strategy takes the object as a setting, `context={"environment": Guess()}`; only a shipped one is in the registry.

A whole example, a game in which a number is guessed:

    from reflective_agents.environments.base import Environment, State, Transition, refuse

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
            guess = self.canonical(action)
            if not guess.isdecimal():
                return refuse(state, f"{action!r} is not a whole number.")
            secret = int(state["task"]["gold"])
            done = int(guess) == secret
            hint = "That is it." if done else "Higher." if int(guess) < secret else "Lower."
            return Transition({**state, "answer": guess, "done": done}, hint, 1.0 if done else None, done)

        def canonical(self, action: str) -> str:
            return action.strip().lstrip("0") or "0"
'''

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NotRequired, Self, TypeAlias, TypeVar, cast

from typing_extensions import TypedDict

from reflective_agents.environments.actions import find_answer
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.outcome import VerifiedBy
from reflective_agents.text.joined import joined
from reflective_agents.text.normal import normal_form

State: TypeAlias = JsonObject
"""The state of a task: complete, as plain JSON data, and never changed in place, for a search may branch anywhere.

Each has at least "task" and "done". "task" is the task itself, which `step` never changes: so states may be stored
without it, and each is whole again as `{**stored, "task": task}`.
"""

Presets: TypeAlias = Mapping[str, Mapping[str, str | int | float | bool]]
"""Settings by name, by the name of a strategy."""

BRIEF = "Give the answer alone, as short as it can be, without an explanation."
"""The form of an answer, for a strategy that knows no environments."""


class Task(TypedDict):
    """One task of an environment, as plain data."""

    id: str
    """Unique within the data set."""
    question: str
    """The question; its format depends on the environment."""
    gold: NotRequired[str]
    """The right answer, read only by `step` when a task ends, and by `score` outside a run."""
    data: NotRequired[JsonObject]
    """Other data of the task, such as paragraphs or clues."""


TaskData = TypeVar("TaskData", Task, dict[str, Any])
"""A task, also one that was not checked yet."""


def task_of(given: Mapping[str, Any] | None, question: str) -> Task:
    """Return the task that a run is given, whole: without a question of its own it is the request, without an id "".

    Args:
        given: The task; None where the request is all there is.
        question: The request.

    Raises:
        Misuse: if its question, its id or its right answer is no text.
    """
    task = cast(Task, {"id": "", "question": question, **(given or {})})
    check_task(task)
    return task


def check_task(task: Mapping[str, Any]) -> None:
    """Refuse a task without a question, or with something else than text in its place or in that of id or gold.

    Raises:
        Misuse: if it is none.
    """
    for name in ("question", "id", "gold"):
        if (name in task or name == "question") and not isinstance(task.get(name), str):
            got = f"not as {type(task[name]).__name__}" if name in task else "and has none"
            raise Misuse(f"a task needs its {name} as text, {got}: {{'id': '1', 'question': 'Why?', 'gold': 'So.'}}")


def without_gold(task: TaskData, environment: "Environment | None") -> TaskData:
    """Return a task without its right answer, unless its environment needs that: with it, the environment would reward
    right answers, and so choose among them."""
    if environment is not None and environment.needs_gold:
        return task
    return cast(TaskData, {name: value for name, value in task.items() if name != "gold"})


class Transition(NamedTuple):
    """The result of an action."""

    state: State
    """The new state; the old one, unchanged, if the action was refused."""
    observation: str
    """The text for the agent. It never holds the right answer, unless a document does."""
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
    """A worked example for prompts: a task, with a solution or a failed attempt."""

    task: str
    """The task as `Environment.public` shows it."""
    acts: tuple[Act, ...] = ()
    """The steps of an agent that acts; empty if the example shows none."""
    reasoning: str = ""
    """The solution as one text, ending in `Environment.answer_form`; empty if the example does not show it."""
    solved: bool = True
    why: str = ""
    """Why the attempt has failed, in a sentence; empty if it has not."""


class Environment(ABC):
    """A kind of tasks, and the rules by which actions change their state. Holds no state of a run itself.

    Subclasses define `name`, `actions` and `step`. The other defaults suit an environment in which an answer is one
    action, and is worth its score.
    """

    name: str
    """Short and unique, such as "questions"."""
    actions: str
    """The allowed actions, on one line, for prompts."""
    goal: str = ""
    """The goal, in words for somebody who does not know the game."""
    rules: str = ""
    """The requirements on an answer; empty if `goal` says it all."""
    effects: str = ""
    """The effects of the actions, for an agent that acts; empty if `actions` says it all."""
    examples: Sequence[Example] = ()
    """Two to four worked examples, one of them a failed attempt."""
    answer_form: str = "End with a line 'Answer: ...' that holds the answer alone, as short as possible."
    """The instruction how to write the answer at the end of a text."""
    labels: Sequence[str] = ()
    """The answers that are allowed, where they can be listed; none of them is taken for a refusal."""
    figure: str = "solved"
    """The figure of `score` that is 1 for a correct answer."""
    correct_if: str = "it equals the right one, as the environment compares answers"
    """What counts as a correct answer, in words that complete "an answer is correct if"."""
    short_answers: bool = False
    """Whether answers are short texts, which a strategy that does not know the environment may give within a longer
    reply."""
    verifier: VerifiedBy = "environment"
    """Who has verified an answer with a reward of 1."""
    runs_tests: bool = False
    """Whether answers are programs, of which `passed` runs tests that an agent has written."""
    scores_by_data: bool = False
    """Whether `score` needs the task's `data`, not just its question and its right answer."""
    presets: ClassVar[Presets] = {}
    """Settings that suit these tasks, by the name of the strategy, in place of all that it presets for tasks itself
    (`TreeContext.task_presets`): what is to stay of that is named again. Those of a user override them."""
    multiline: bool = False
    """Whether one action is a text of many lines, so that no list of actions can be asked for."""
    needs_gold: bool = False
    """Whether `step` needs the task's right answer. Otherwise a tree search leaves it out of the task, so as not to be
    guided by it."""
    by_subquestions: bool = False
    """Whether a task is a question that is solved by sub-questions, rather than by a plan of actions."""

    @classmethod
    def from_settings(cls, docstore: str | None, unsafe_code: bool) -> Self:
        """Make the environment from the settings `docstore` and `unsafe_code`, as far as it uses them."""
        return cls()

    # The course of a task

    def start(self, task: Task) -> State:
        """Return the state before the first action. Raises `Misuse` if the task is of another kind."""
        check_task(task)
        return {"task": task, "answer": "", "done": False}

    def public(self, state: State) -> str:
        """Return the state as prompts show it: all that the agent may know, and never the right answer."""
        return str(state["task"]["question"])

    def answer(self, state: State) -> str:
        """Return the answer that a state holds; empty while there is none."""
        return str(state["answer"])

    def key(self, state: State) -> str:
        """Return the key of a state: states of a task with the same key have the same value.

        Empty where the value depends on the whole history of the state.
        """
        return ""

    @abstractmethod
    async def step(self, state: State, action: str) -> Transition:
        """Apply one action to a state whose task has not ended. The observation says why an action is refused or fails.

        Raises `Misuse` only for faults that no other action could avoid, such as a missing sandbox.
        """

    def legal_actions(self, state: State) -> list[str] | None:
        """Return every action that leads on from a state; None where they cannot be listed."""
        return None

    def canonical(self, action: str) -> str:
        """Return the canonical form of an action, the same for equal ones. Takes any text."""
        return " ".join(action.casefold().split())

    def is_action(self, line: str) -> bool:
        """Return whether a line is an action, so that it needs no label; False where a thought may look like it."""
        return False

    # Answers

    def final_action(self, answer: str) -> str | None:
        """Return the action that gives an answer; None where an answer is built of many actions."""
        return answer

    def is_whole(self, state: State) -> bool:
        """Return whether a state holds an answer that could end a run, not a part of one."""
        return bool(self.answer(state)) and self.final_action("") is not None

    def with_final_reward(self, transition: Transition) -> Transition:
        """Return a transition with the reward 0 if it holds a whole answer that leaves the task open: should the run
        end here, nothing is solved."""
        is_open = transition.valid and not transition.done and transition.reward is None
        if is_open and self.is_whole(transition.state):
            return transition._replace(reward=0.0)
        return transition

    def find_answer(self, text: str) -> str:
        """Return the answer that a model's text ends with; empty if there is none."""
        return find_answer(text)

    def normal(self, answer: str) -> str:
        """Return the normal form of an answer, the same for equal ones; empty for one that cannot be read."""
        return normal_form(answer)

    def vote(self, answer: str, question: str) -> str:
        """Return the form by which votes for an answer to a question are counted; empty if it cannot be read."""
        return self.normal(answer)

    def equal(self, first: str, second: str) -> bool:
        """Return whether two answers are equal, and can be read."""
        normal = self.normal(first)
        return normal != "" and normal == self.normal(second)

    def is_label(self, answer: str) -> bool:
        """Return whether an answer is one of `labels`."""
        return any(self.equal(answer, label) for label in self.labels)

    # Measuring

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Measure an answer outside a run, each figure from 0 to 1; empty if the right answer is not known."""
        gold = task.get("gold")
        return {} if gold is None else {self.figure: float(self.equal(answer, gold))}

    async def measure(self, task: Task, answer: str) -> dict[str, float]:
        """Return the same as `score`, without blocking the event loop."""
        return self.score(task, answer)

    def measurable(self, task: Task) -> bool:
        """Return whether an answer to a task can be called correct or not."""
        return "gold" in task

    def is_correct(self, scores: Mapping[str, float]) -> bool:
        """Return whether the scores are those of a correct answer."""
        return scores.get(self.figure) == 1

    def request(self, task: Task) -> str:
        """Return the task as a question to a strategy that knows no environments."""
        return joined([self.goal, task["question"], BRIEF], "\n\n")

    # Before tasks are run

    async def ready(self) -> None:  # noqa: B027 - most need nothing
        """Raise `Misuse` if no task can be run here, for example without a sandbox."""

    def advise(self, tasks: Sequence[Task]) -> str:
        """Return a note for the user who runs these tasks; empty if there is none."""
        return ""

    def wants_tests(self, task: Task) -> bool:
        """Return whether an agent has to write tests of its own to check its work."""
        return False

    def with_own_tests(self, task: Task, text: str, most: int) -> Task:
        """Return a task with up to `most` tests from a text of the agent."""
        return task

    async def passed(self, task: Task, answer: str, tests: Sequence[str]) -> list[bool]:
        """Return which tests an answer passes; only where `runs_tests`."""
        raise NotImplementedError(f"{self.name} runs no tests")


def refuse(state: State, why: str) -> Transition:
    """Refuse an action; the state stays the same.

    Args:
        state: The state.
        why: What is wrong with this action, in a few words. The allowed actions are in the prompt; an example here
            would come back as the next action, or be taken for the answer.
    """
    return Transition(state, why, done=bool(state["done"]), valid=False)
