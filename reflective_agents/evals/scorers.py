"""Scorers: what counts as a correct answer. They see the right answer, after the run; verifiers never do.

A scorer is chosen by name, `em`, `includes`, `number`, `choice`, `judge` or `FILE.py:function`; in Python also as a
function or an object. Without one the environment of the tasks scores. inspect_ai's names `exact` and
`model_graded_qa` stand for `em` and `judge`.
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from langchain_core.messages import AIMessage

from reflective_agents.environments.arithmetic import Arithmetic
from reflective_agents.environments.base import Environment, Task
from reflective_agents.environments.plain import PLAIN
from reflective_agents.nodes.asking.grading import grade
from reflective_agents.nodes.evidence.references import without_citations
from reflective_agents.nodes.verifiers.function import in_thread
from reflective_agents.state.context import Context, Model
from reflective_agents.state.errors import Misuse, ScorerFailed
from reflective_agents.state.loading import load_named
from reflective_agents.state.run import Usage
from reflective_agents.text.labels import answer_in, bare
from reflective_agents.text.normal import normal_form, numbers


class Score(NamedTuple):
    """What an answer is worth."""

    scores: dict[str, float]
    """Figures by name, each from 0 to 1; that of the scorer's `figure` is 1 for a correct answer."""
    extracted: str | None = None
    """The short answer that was taken from the reply; None where the whole reply counted."""
    usage: Usage | None = None
    """What a model that graded it has taken; None if none did."""


class Scorer(ABC):
    """Says whether an answer is correct.

    Attributes:
        figure: The figure that is 1 for a correct answer.
        correct_if: What counts as correct, in words that complete "an answer is correct if".
        form: What the model is told of the form of its answer; empty for nothing.
        sees_gold_only: Whether it needs nothing of a task but its question and its right answer.
    """

    figure: str
    correct_if: str
    form: str = ""
    sees_gold_only: bool = True

    @abstractmethod
    async def score(self, task: Task, answer: str) -> Score:
        """Measure an answer, after its run."""

    def measurable(self, task: Task) -> bool:
        """Return whether an answer to a task can be called correct or not."""
        return "gold" in task

    def is_correct(self, scores: Mapping[str, float]) -> bool:
        """Return whether the figures are those of a correct answer."""
        return scores.get(self.figure) == 1


Function: TypeAlias = Callable[[str, Task], Any]
"""A scorer of your own: from an answer and its task to a bool, a score from 0 to 1, or scores by name, of which "score"
decides; or an awaitable of one of these."""
ScorerLike: TypeAlias = Scorer | Function | str | None


def short_answer(reply: str) -> str:
    """Return the answer that a reply names, by a label such as "Answer:" or in words such as "the answer is"; else the
    whole reply. Citations and their list do not count."""
    body = without_citations([AIMessage(reply)])[0].text.strip()
    return answer_in(body) or bare(body)


class ByEnvironment(Scorer):
    """The environment's own measure.

    Args:
        environment: The environment.
        reads: Whether answers are whole replies, of which the short answer counts: of a strategy that was not told the
            environment.
    """

    def __init__(self, environment: Environment, *, reads: bool) -> None:
        self._environment = environment
        self._reads = reads and environment.short_answers
        self.figure, self.correct_if = environment.figure, environment.correct_if
        self.sees_gold_only = not environment.scores_by_data
        self.form = PLAIN.answer_form if environment is PLAIN else ""

    async def score(self, task: Task, answer: str) -> Score:
        """Measure the short answer, or the whole one."""
        counted = short_answer(answer) if self._reads else answer
        return Score(await self._environment.measure(task, counted), counted if self._reads else None)

    def measurable(self, task: Task) -> bool:
        """Return what the environment says."""
        return self._environment.measurable(task)

    def is_correct(self, scores: Mapping[str, float]) -> bool:
        """Return what the environment says."""
        return self._environment.is_correct(scores)


class Includes(Scorer):
    """Whether the right answer stands in the reply."""

    figure = "includes"
    correct_if = "the right answer stands in it as whole words; case, punctuation, articles and blanks do not count"

    async def score(self, task: Task, answer: str) -> Score:
        """Look for the right answer in the normal form of the reply."""
        gold = normal_form(task.get("gold", ""))
        if not gold:
            return Score({"includes": 0.0})
        # Scripts without blanks between their words have no borders to look for.
        pattern = rf"(?<![a-z0-9\u00c0-\u024f/.-]){re.escape(gold)}(?![a-z0-9\u00c0-\u024f/.-])"
        stands_there = re.search(pattern, normal_form(answer)) is not None
        return Score({"includes": float(stands_there)})


class Number(Scorer):
    """Whether the number of the answer is the right one."""

    figure = "number"
    correct_if = "the number that it names last is the right one, however it is written"
    form = Arithmetic.answer_form

    async def score(self, task: Task, answer: str) -> Score:
        """Compare the last number of the short answer with that of the right one."""
        extracted = short_answer(answer)
        found, right = numbers(extracted)[-1:], numbers(task.get("gold", ""))[-1:]
        return Score({"number": float(found == right)}, extracted)

    def measurable(self, task: Task) -> bool:
        """Return whether the right answer holds a number."""
        return bool(numbers(task.get("gold", "")))


_CHOICE = re.compile(r"[\W_]*([A-Za-z])\s*(?:[).:,\]*]|$)", re.MULTILINE)
# In "answer a question" and "the choice I made" the letter is a word.
_NAMED = re.compile(r"\b(?:option|choice|answer)\W{0,3}(?!(?-i:[aiI])\s+\w)([A-Z])\b", re.IGNORECASE)


class Choice(Scorer):
    """Whether the letter of the answer is the right one."""

    figure = "choice"
    correct_if = "the letter that it chooses is the right one"
    form = "End with a line 'Answer: ...' that holds the letter of the right choice alone."

    async def score(self, task: Task, answer: str) -> Score:
        """Compare the letter of the short answer with that of the right one."""
        extracted = letter_of(answer)
        correct = extracted != "" and extracted == letter_of(task.get("gold", ""))
        return Score({"choice": float(correct)}, extracted)

    def measurable(self, task: Task) -> bool:
        """Return whether the right answer begins with a letter that stands alone."""
        return letter_of(task.get("gold", "")) != ""


def letter_of(reply: str) -> str:
    """Return the letter of a choice, in upper case: "B", "(b)", "B) Rome", "Answer: B"; empty if there is none."""
    extracted = short_answer(reply)
    match = _CHOICE.match(extracted) or _NAMED.search(extracted)
    return match[1].upper() if match else ""


class ByModel(Scorer):
    """A model that compares the reply with the right answer. Its calls are counted apart from those of the run.

    Args:
        environment: The environment of the tasks, whose own figures stand beside the grade where it has an exact match.
        context: The settings of the runs: their limits hold for each grade, too.
        model: The model. Default: the judge of the runs, else their model.
        reads: As for `ByEnvironment`.
    """

    figure = "judge"

    def __init__(self, environment: Environment, context: Context, model: Model = None, *, reads: bool) -> None:
        self.model: Model = model or getattr(context, "judge_model", None) or context.model
        self._exact = exact_match_of(environment, reads=reads)
        self._context = context.model_copy(update={"answer_schema": None, "model": self.model})
        self.correct_if = "a model that sees the right answer finds that it says the same"

    async def score(self, task: Task, answer: str) -> Score:
        """Let the model grade the reply.

        Raises:
            LimitReached, ModelFailed: if it cannot be graded.
        """
        exact = await self._exact.score(task, answer)
        graded = await grade(self._context, task["question"], task.get("gold", ""), answer)
        return Score({"judge": float(graded.correct), **exact.scores}, exact.extracted, graded.usage)


class Own(Scorer):
    """A function of the user's, whose name and docstring say what counts as correct.

    Raises:
        Misuse: if it does not take an answer and its task.
    """

    figure = "score"
    sees_gold_only = False

    def __init__(self, function: Function) -> None:
        self.function = function
        words = (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")
        self.name = getattr(function, "__name__", type(function).__name__)
        if not _takes_both(function):
            raise Misuse(f"scorer {self.name}: write a function of two arguments, the answer and its task")
        self.correct_if = f"{self.name} gives it a score of 1"
        if words:
            self.correct_if += f" ({words})"

    async def score(self, task: Task, answer: str) -> Score:
        """Call the function, in a thread unless it awaits.

        Raises:
            ScorerFailed: if it raises, or returns something else than scores from 0 to 1.
        """
        try:
            value = await self._call(answer, task)
        except Exception as error:  # the code is the user's, and may raise anything
            raise ScorerFailed(f"scorer {self.name} raises {type(error).__name__}: {error}") from error
        scores = dict(value) if isinstance(value, Mapping) else {"score": value}
        if "score" not in scores or not all(map(_is_score, scores.values())):
            raise ScorerFailed(
                f"scorer {self.name} returns {value!r}: return a bool, a score from 0 to 1, or a dict of scores with "
                '"score"'
            )
        return Score({str(name): float(each) for name, each in scores.items()})

    async def _call(self, answer: str, task: Task) -> Any:
        function = self.function
        if inspect.iscoroutinefunction(function):
            return await function(answer, task)
        value = await in_thread(lambda: function(answer, task))
        return await value if isinstance(value, Awaitable) else value

    def measurable(self, task: Task) -> bool:
        """Return True: the function knows what it looks at."""
        return True


def _takes_both(function: Function) -> bool:
    try:
        inspect.signature(function).bind("answer", "task")
    except TypeError:
        return False
    except ValueError:
        return True  # a built-in that does not say
    return True


def _is_score(value: object) -> bool:
    return isinstance(value, bool | int | float) and 0 <= value <= 1


SCORERS = ("em", "includes", "number", "choice", "judge")
"""The names of scorers."""
ALIASES = {"exact": "em", "model_graded_qa": "judge"}
"""Names that inspect_ai has for them."""


def exact_match_of(environment: Environment, *, reads: bool) -> ByEnvironment:
    """Return the exact match of an environment that has its own, else that of open questions."""
    if environment.figure == PLAIN.figure:
        return ByEnvironment(environment, reads=reads)
    return ByEnvironment(PLAIN, reads=True)


def resolve_scorer(
    scorer: ScorerLike, environment: Environment, context: Context, *, reads: bool | None = None
) -> Scorer:
    """Return what scores the answers of an evaluation.

    Args:
        scorer: A scorer, its name, a function of your own, or None for the environment's own measure.
        environment: The environment of the tasks.
        context: The settings of the runs.
        reads: As for `ByEnvironment`. Default: whether the settings name no environment.

    Raises:
        Misuse: if there is no such scorer, or its file cannot be loaded.
    """
    if isinstance(scorer, Scorer):
        return scorer
    if scorer is not None and not isinstance(scorer, str):
        return Own(scorer)
    if reads is None:
        reads = getattr(context, "environment", None) is None
    name, _, model = (scorer or "").partition(":")
    match ALIASES.get(name, name):
        case "" if not model:
            return ByEnvironment(environment, reads=reads)
        case "em" if not model:
            return exact_match_of(environment, reads=reads)
        case "includes" if not model:
            return Includes()
        case "number" if not model:
            return Number()
        case "choice" if not model:
            return Choice()
        case "judge":
            return ByModel(environment, context, model or None, reads=reads)
    if ":" not in (scorer or "") or name in SCORERS:
        raise Misuse(f"scorer {scorer!r}: choose {', '.join(SCORERS)}, judge:MODEL, or FILE.py:function")
    function = load_named(scorer or "", "scorer")
    if not callable(function):
        raise Misuse(f"scorer {scorer!r} is no function")
    return Own(function)


def name_of(scorer: ScorerLike) -> str | None:
    """Return the name under which results keep a scorer; None for that of the environment."""
    if scorer is None or scorer == "":
        return None
    if isinstance(scorer, str):
        head, colon, rest = scorer.partition(":")
        return f"{ALIASES.get(head, head)}{colon}{rest}"
    return getattr(scorer, "__name__", type(scorer).__name__)


def with_form(
    question: str, scorer: Scorer, task: Task, environment: Environment, context: Context
) -> list[tuple[str, str]]:
    """Return the messages that put a question: before it, what form of answer is wanted, if one is.

    It stands apart, so that nobody looks up what it says. An environment says itself what an answer is.
    """
    is_open = environment is PLAIN and getattr(context, "environment", None) is None
    messages = [("user", question)]
    if is_open and scorer.form and scorer.measurable(task):
        messages.insert(0, ("system", scorer.form))
    return messages
