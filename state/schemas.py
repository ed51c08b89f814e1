"""What models are asked to fill in: the structured outputs of critics, judges and responders."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model

T = TypeVar("T")
# Models fill in forms in the language of the question, whatever the form says.
_YES = "yes y true ja oui sí si sì sim да 是 はい 예 네 ใช่ نعم"
_NO = "no n false nein non não нет 否 不 不是 いいえ 아니요 ไม่ ไม่ใช่ لا"
_TRUTHS: dict[str, bool] = {**dict.fromkeys(_NO.split(), False), **dict.fromkeys(_YES.split(), True)}
_IGNORED = " \t\n.!\"'*`。！"


def _read_truth(value: T) -> T | bool:
    if not isinstance(value, str):
        return value
    return _TRUTHS.get(value.strip(_IGNORED).casefold(), value)


Truth = Annotated[bool, BeforeValidator(_read_truth)]
"""True or false, or a word for it."""


def one_of(options: Sequence[str | int]) -> Any:
    """Return the type of a field that holds one of these names or numbers, in whatever case."""
    meant = {str(option).casefold(): option for option in options}

    def read(value: T) -> T | str | int:
        return meant.get(str(value).strip(_IGNORED).casefold(), value)

    return Annotated[Literal[tuple(options)], BeforeValidator(read)]


Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A judgement from 0 (worthless) to 1 (perfect). NaN and infinities are refused."""


class Critique(BaseModel):
    """Your critique of the draft."""

    critique: str = Field(
        description="The faults, the gravest first: each with the passage in quotation marks and what to write "
        "instead. If there is none, what is good."
    )
    score: Score = Field(description="The score that follows from the critique, from 0 to 1.")
    accept: Truth = Field(description="Whether the draft can be handed to the reader as it is.")


class Judgement(BaseModel):
    """Your judgement of one trajectory."""

    reasoning: str = Field(
        description="The criteria in turn, in a few sentences: what was achieved, what is wrong or lacking, and what "
        "should come next."
    )
    score: Score = Field(description="The score that follows from the reasons, from 0 to 1.")
    solved: Truth = Field(description="Whether it ends in an answer that needs nothing further.")


class Judgements(BaseModel):
    """Your judgements of all candidates, one each, in the order of their numbers."""

    judgements: list[Judgement] = Field(min_length=1)

    @classmethod
    @cache
    def of(cls, count: int) -> "type[Judgements]":
        """Return the form for exactly so many judgements, which a server can hold a model to."""
        exact: Any = (Annotated[list[Judgement], Field(min_length=count, max_length=count)], ...)
        return create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, judgements=exact)


class Reflection(BaseModel):
    """Your critique of your own answer."""

    missing: str = Field(description="What the answer still lacks. Empty if nothing is missing.")
    superfluous: str = Field(description="What the answer could do without. Empty if nothing is superfluous.")
    complete: Truth = Field(description="Whether all that was asked for is there; false also if it cannot be found.")


class AnswerQuestion(BaseModel):
    """Your answer to the question, your critique of it, and what to search for to improve it."""

    answer: str = Field(min_length=1, description="The answer.")
    reflection: Reflection
    search_queries: list[str] = Field(
        max_length=3,
        description="1 to 3 search queries that would supply what is missing. Empty where nothing can be searched.",
    )


class ReviseAnswer(BaseModel):
    """Your revised answer, which cites the search results by their numbers."""

    answer: str = Field(min_length=1, description="The whole answer anew, with citations such as [1], without a list.")
    reflection: Reflection
    search_queries: list[str] = Field(
        max_length=3,
        description="Up to 3 new search queries. Empty if the answer is complete, or no search can complete it.",
    )


class Usefulness(BaseModel):
    """How useful each candidate is."""

    scores: list[Score] = Field(min_length=1, description="One score from 0 to 1 for each candidate, in their order.")

    @classmethod
    @cache
    def of(cls, count: int) -> "type[Usefulness]":
        """Return the form for exactly so many scores, which a server can hold a model to."""
        scores = cls.model_fields["scores"].description
        exact: Any = (list[Score], Field(min_length=count, max_length=count, description=scores))
        return create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, scores=exact)
