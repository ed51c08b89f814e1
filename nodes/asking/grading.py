"""Grading an answer by the right one, after the run that has given it."""

from typing import NamedTuple

from pydantic import BaseModel, Field

from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.asking.wording import use_prompts
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import grading as prompts
from reflective_agents.state.context import Context
from reflective_agents.state.run import Usage
from reflective_agents.state.schemas import Truth


class Grade(BaseModel):
    """Your grade of the answer."""

    reason: str = Field(description="What the answer and the right answer share, or in what they differ.")
    correct: Truth = Field(description="Whether the answer says what the right answer says.")


class Graded(NamedTuple):
    """Whether an answer is correct, and what it took to grade it."""

    correct: bool
    usage: Usage


async def grade(context: Context, question: str, right: str, answer: str) -> Graded:
    """Let the model of some settings compare an answer with the right one, within their limits.

    Raises:
        LimitReached, ModelFailed: if it cannot be graded.
    """
    step = Step(context, {}, lambda _: None)
    prompt = prompts.GRADE.format_messages(
        question=quoted("question", question), right=quoted("right_answer", right), answer=quoted("answer", answer)
    )
    with use_prompts(context.prompts):
        verdict = await ask(step, context.model, prompt, Grade, judging=True)
    return Graded(verdict.correct, step.meter.usage)
