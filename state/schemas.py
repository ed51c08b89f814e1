"""What models are asked to fill in: the structured outputs of critics, judges and responders."""

from typing import Annotated

from pydantic import BaseModel, Field

Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A judgement from 0 (worthless) to 1 (perfect). NaN and infinities are refused."""


class Critique(BaseModel):
    """Your critique of the draft."""

    critique: str = Field(description="What is good, what is wrong or missing, and concretely how to improve it.")
    score: Score = Field(description="Quality of the draft from 0 (useless) to 1 (cannot be improved).")
    accept: bool = Field(description="Whether the draft can be handed to the reader as it is.")


class Judgement(BaseModel):
    """Your judgement of one trajectory."""

    reasoning: str = Field(description="What the trajectory has achieved, what it lacks, and what should come next.")
    score: Score = Field(description="How far it is on the way to a correct, complete, supported answer, from 0 to 1.")
    solved: bool = Field(description="Whether it ends in an answer that fully solves the request.")


class Judgements(BaseModel):
    """Your judgements of all candidates, one each, in the order of their numbers."""

    judgements: list[Judgement] = Field(min_length=1)


class Reflection(BaseModel):
    """Your critique of your own answer."""

    missing: str = Field(description="What the answer still lacks. Empty if nothing is missing.")
    superfluous: str = Field(description="What the answer could do without. Empty if nothing is superfluous.")


class AnswerQuestion(BaseModel):
    """Your answer to the question, your critique of it, and what to search for to improve it."""

    answer: str = Field(min_length=1, description="The answer, about 250 words.")
    reflection: Reflection
    search_queries: list[str] = Field(
        min_length=1, max_length=3, description="1 to 3 search queries that would supply what is missing."
    )


class ReviseAnswer(BaseModel):
    """Your revised answer, with numbered citations [1], [2] and the references they point to."""

    answer: str = Field(min_length=1, description="The revised answer, about 250 words, with citations such as [1].")
    reflection: Reflection
    search_queries: list[str] = Field(
        max_length=3, description="Up to 3 new search queries. Empty if nothing is missing."
    )
    references: list[str] = Field(description="URLs of the search results cited: the first is [1], the second [2].")
