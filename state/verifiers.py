"""Verifiers: functions and data that say whether an answer is good, and what they may be (docs/verifiers.md)."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from reflective_agents.state.answer_schema import AnswerSchema
from reflective_agents.state.callers_schemas import expanded
from reflective_agents.state.context import Context, Model, from_json
from reflective_agents.state.effect import only_with
from reflective_agents.state.policy import Operator

if TYPE_CHECKING:  # the command shows the settings without loading LangChain
    from langchain_core.messages import AnyMessage

MOST = 20
"""Verifiers of one run, and criteria of one rubric."""


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


class Form(BaseModel):
    """What all verifiers have: whether an answer needs its acceptance, how much its score weighs, and the score that it
    accepts, where that is not the run's `threshold`."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    name: str = Field(default="", max_length=100)
    must: bool = True
    weight: float = Field(default=1, gt=0, le=1000, allow_inf_nan=False)
    threshold: float | None = Field(default=None, gt=0, le=1)


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

    pattern: str = Field(min_length=1, max_length=10_000)

    @model_validator(mode="after")
    def _is_valid(self) -> "Pattern":
        expanded([{"type": "string", "pattern": self.pattern}])
        return self


class Schema(Form):
    """A JSON schema that the answer, a JSON object, fits."""

    form: AnswerSchema = Field(alias="schema")


class Length(Form):
    """How long the answer is, without its list of references."""

    min_words: int | None = Field(default=None, ge=1, le=1_000_000)
    max_words: int | None = Field(default=None, ge=1, le=1_000_000)
    min_characters: int | None = Field(default=None, ge=1, le=10_000_000)
    max_characters: int | None = Field(default=None, ge=1, le=10_000_000)

    @model_validator(mode="after")
    def _has_a_bound(self) -> "Length":
        if not self.model_fields_set & {"min_words", "max_words", "min_characters", "max_characters"}:
            raise ValueError("a verifier is one of " + ", ".join(KINDS))
        return self


class Criterion(BaseModel):
    """What a rubric demands, how much it weighs, and whether an answer is refused that does not meet it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    criterion: str = Field(min_length=1, max_length=2_000)
    weight: float = Field(default=1, gt=0, le=1000, allow_inf_nan=False)
    must: bool = False


class Rubric(Form):
    """Criteria in words, each of which a model judges apart; by default the run's judge."""

    rubric: list[Annotated[str, Field(min_length=1, max_length=2_000)] | Criterion] = Field(
        min_length=1, max_length=MOST
    )
    model: Model = None

    @property
    def criteria(self) -> list[Criterion]:
        """The criteria; a text alone weighs 1, and is no must."""
        return [Criterion(criterion=each) if isinstance(each, str) else each for each in self.rubric]


KINDS: Mapping[str, type[Form]] = {
    "function": Function,
    "pattern": Pattern,
    "schema": Schema,
    "min_words": Length,
    "max_words": Length,
    "min_characters": Length,
    "max_characters": Length,
    "rubric": Rubric,
}
"""The form of each kind of verifier, by the key that it is known by."""
OPERATORS = ("function", "model")
"""Keys of verifiers that reach the machine, or a model of their own: only the operator may give them where others send
the requests."""


def arguments(function: Callable[..., Any]) -> int | None:
    """Return how many arguments a verifier is given, two or three; None if it takes neither."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return 2  # a built-in that does not say
    for count in (3, 2):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count
    return None


def read_verifier(value: Any) -> Form:
    """Read a verifier: a function, or data.

    Raises:
        ValueError: if it is none.
    """
    if callable(value):
        return Function.model_validate({"function": value})
    known = [key for key in value if key in KINDS] if isinstance(value, dict) else []
    if not known:
        raise ValueError("a verifier is a function, or an object with one of " + ", ".join(KINDS))
    return KINDS[known[0]].model_validate(value)


def _are_verifiers(value: Any) -> Any:
    for verifier in value if isinstance(value, list) else []:
        read_verifier(verifier)
    return value


def _reach_nothing(verifiers: Sequence[Any]) -> bool:
    """Tell whether verifiers are data that reach nothing of this machine, as anybody may give."""
    return all(isinstance(each, dict) and not any(key in each for key in OPERATORS) for each in verifiers)


Verifiers = Annotated[
    list[Any],
    BeforeValidator(_are_verifiers),
    BeforeValidator(from_json),
    WithJsonSchema({"type": "array", "items": {"type": "object"}, "default": []}),
    Operator(_reach_nothing),
]


class VerifiedContext(Context):
    """Settings of strategies that answer."""

    verifiers: Verifiers = Field(
        default=[],
        max_length=MOST,
        description='What says whether an answer is good: [{"pattern": "^[A-Z]"}, {"max_words": 100}, {"schema": '
        '{...}}, {"rubric": ["It names a price."]}]; in Python also functions (request, answer) -> bool, score or '
        "feedback.",
    )
    threshold: Annotated[float, only_with("verifiers")] = Field(
        default=1.0, gt=0, le=1, description="Lowest score at which a verifier accepts an answer."
    )
    verifier_timeout: Annotated[float, only_with("verifiers")] = Field(
        default=60, gt=0, le=3600, description="Longest time that one verifier may take, in seconds."
    )

    @property
    def is_verified(self) -> bool:
        """Whether anything verifies answers."""
        return bool(self.verifiers)

    @property
    def verifying_calls(self) -> int:
        """The most model calls that it takes to verify an answer, without retries."""
        return sum(len(each["rubric"]) for each in self.verifiers if isinstance(each, dict) and "rubric" in each)

    @property
    def forms(self) -> list[Form]:
        """The verifiers as they are read."""
        return [read_verifier(verifier) for verifier in self.verifiers]
