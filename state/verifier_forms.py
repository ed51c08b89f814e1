"""What a verifier may be: a function of the user's own, or data that says what is verified (docs/verifiers.md)."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypedDict
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from reflective_agents.state.answer_schema import AnswerSchema
from reflective_agents.state.callers_schemas import expanded
from reflective_agents.state.context import Model
from reflective_agents.state.own_tools import CriticTools

if TYPE_CHECKING:  # the command shows the settings without loading LangChain
    from langchain_core.messages import AnyMessage

MOST = 20
"""Verifiers of one run, criteria of one rubric, and tools of one critic."""
LOOK_UPS = 3
"""Most model calls by which a critic looks things up before it judges."""


class VerifiedRun(TypedDict):
    """What a verifier with a third argument is given: the conversation with the request, and the sources that the
    answer rests on, by the marks that cite them: title and passages as one text. It never holds the right answer."""

    messages: "Sequence[AnyMessage]"
    sources: Mapping[str, str]


Reply: TypeAlias = bool | float | str | Mapping[str, Any] | None
"""What a function may say of an answer: whether it is good, a score from 0 to 1, what is wrong with it (None or "" if
nothing is), or `{"score": ..., "feedback": ...}`."""
VerifierFunction = Callable[..., Reply | Awaitable[Reply]]
"""`(request, answer) -> reply`, or `(request, answer, run) -> reply`; it may await."""


def arguments(function: Callable[..., Any]) -> int | None:
    """Return how many arguments a verifier is given, two or three; None if it takes neither. A third one that has a
    default, and is not called `run`, is its own affair."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return 2  # a built-in that does not say
    third = [*signature.parameters.values()][2:3]
    is_own = any(each.default is not each.empty and each.name != "run" for each in third)
    if not is_own and _takes(signature, 3):
        return 3
    return 2 if _takes(signature, 2) else None


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


class Form(BaseModel):
    """What all verifiers have: whether an answer needs its acceptance, how much its score weighs, and the score that it
    accepts, where that is not the run's `threshold`."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    name: str = Field(default="", max_length=100)
    must: bool = True
    weight: float = Field(default=1, gt=0, le=1000, allow_inf_nan=False)
    threshold: float | None = Field(default=None, gt=0, le=1)
    kind: ClassVar[str] = ""
    """What outcomes and events call one without a name."""

    @property
    def decides(self) -> bool:
        """Whether an answer that this does not accept is refused; else it only ranks."""
        return self.must


class Function(Form):
    """A function of the user's own."""

    function: VerifierFunction

    @model_validator(mode="after")
    def _takes_an_answer(self) -> "Function":
        if arguments(self.function) is None:
            raise ValueError("a verifier takes two or three arguments: (request, answer) or (request, answer, run)")
        return self


class Pattern(Form):
    """A regular expression that is found in the answer. It is matched in linear time (the syntax of Rust's regex)."""

    kind: ClassVar[str] = "verifier of the pattern"
    pattern: str = Field(min_length=1, max_length=10_000)

    @model_validator(mode="after")
    def _is_valid(self) -> "Pattern":
        expanded([{"type": "string", "pattern": self.pattern}])
        return self


class Schema(Form):
    """A JSON schema that the answer, a JSON object, fits."""

    kind: ClassVar[str] = "verifier of the schema"
    form: AnswerSchema = Field(alias="schema")


class Length(Form):
    """How long the answer is, without its list of references."""

    kind: ClassVar[str] = "verifier of the length"
    min_words: int | None = Field(default=None, ge=1, le=1_000_000)
    max_words: int | None = Field(default=None, ge=1, le=1_000_000)
    min_characters: int | None = Field(default=None, ge=1, le=10_000_000)
    max_characters: int | None = Field(default=None, ge=1, le=10_000_000)

    @model_validator(mode="after")
    def _has_a_bound(self) -> "Length":
        words, characters = (self.min_words, self.max_words), (self.min_characters, self.max_characters)
        if {*words, *characters} == {None}:
            raise ValueError("the length of an answer has a bound: give min_words, max_words or those of characters")
        for least, most in (words, characters):
            if least is not None and most is not None and least > most:
                raise ValueError(f"no answer has at least {least} and at most {most}")
        return self


class Criterion(BaseModel):
    """What a rubric demands, how much it weighs, and whether an answer is refused that does not meet it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    criterion: str = Field(min_length=1, max_length=2_000)
    weight: float = Field(default=1, gt=0, le=1000, allow_inf_nan=False)
    must: bool = False


class Rubric(Form):
    """Criteria in words, each of which a model judges apart; by default the run's judge."""

    kind: ClassVar[str] = "rubric"
    rubric: list[Annotated[str, Field(min_length=1, max_length=2_000)] | Criterion] = Field(
        min_length=1, max_length=MOST
    )
    model: Model = None
    tools: CriticTools = Field(default=[], max_length=MOST)

    @property
    def criteria(self) -> list[Criterion]:
        """The criteria; a text alone weighs 1, and is no must."""
        return [Criterion(criterion=each) if isinstance(each, str) else each for each in self.rubric]

    @property
    def most_calls(self) -> int:
        """The most model calls that it takes to judge an answer, without retries."""
        return len(self.rubric) + (LOOK_UPS if self.tools else 0)


class Language(Form):
    """The language that the answer is written in."""

    kind: ClassVar[str] = "verifier of the language"
    language: Literal[
        "Chinese", "Danish", "Dutch", "English", "French", "German", "Greek", "Hebrew", "Italian", "Japanese", "Korean",
        "Norwegian", "Portuguese", "Romanian", "Spanish", "Swedish", "Thai",
    ]  # fmt: skip


class ProgramTests(Form):
    """Tests that the program in the answer passes, in the sandbox: statements, or a file of Python with functions
    `test_...`. The program defines the `entry_point`. The score is the share of the tests that pass."""

    kind: ClassVar[str] = "tests"
    tests: Annotated[str, Field(min_length=1)] | list[str] = Field(min_length=1, max_length=1_000)
    entry_point: str = Field(pattern=r"^[A-Za-z_]\w*$", max_length=200)


class Command(Form):
    """A Python program with its arguments, run in the sandbox with the answer as its input. It accepts with the exit
    code 0; what it prints is the feedback."""

    kind: ClassVar[str] = "command"
    command: list[str] = Field(min_length=1, max_length=100)


class Reward(Form):
    """A reward model behind vLLM's `/pooling`. It only ranks, unless it has a `threshold` of its own.

    `classify` scores a whole answer, `token_classify` each step on the way to it (a process reward). `model` is its
    name on the server; `label` which of several labels is the good one, from the last (-1); `step_tag` what ends each
    step; `key_variable` the environment variable with the server's key.
    """

    kind: ClassVar[str] = "reward model"
    reward: str = Field(max_length=2_000)
    model: str = Field(default="", max_length=500)
    task: Literal["classify", "token_classify"] = "classify"
    label: int = Field(default=-1, ge=-1, le=1_000)
    step_tag: str = Field(default="\n\n", min_length=1, max_length=100)
    key_variable: str = Field(default="", max_length=200)

    @field_validator("reward")
    @classmethod
    def _is_address(cls, address: str) -> str:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError("a reward model has an address: http://host:port")
        return address.rstrip("/")

    @model_validator(mode="after")
    def _needs_a_threshold(self) -> "Reward":
        if self.threshold is None and self.must and "must" in self.model_fields_set:
            raise ValueError("a reward model that must accept needs a threshold")
        return self

    @property
    def decides(self) -> bool:
        """Whether it has a threshold to decide by."""
        return self.must and self.threshold is not None


KINDS: Mapping[str, type[Form]] = {
    "function": Function,
    "pattern": Pattern,
    "schema": Schema,
    "min_words": Length,
    "max_words": Length,
    "min_characters": Length,
    "max_characters": Length,
    "rubric": Rubric,
    "language": Language,
    "tests": ProgramTests,
    "command": Command,
    "reward": Reward,
}
"""The form of each kind of verifier, by the key that it is known by."""
