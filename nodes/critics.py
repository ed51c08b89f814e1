"""Critics of a draft: a model, a person, plain functions, each giving the same critique."""

import inspect
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import interrupt
from pydantic import ValidationError

from nodes.chat import ask
from nodes.step import Step
from nodes.transcript import quoted, request_text
from prompts import reflection as prompts
from state.context import Check, ReflectionContext
from state.schemas import Critique

ACCEPTING = {"", "accept", "accepted", "ok", "yes", "y"}


async def criticise(step: Step[ReflectionContext], conversation: Sequence[BaseMessage], draft: str) -> Critique:
    """Let the critic that the settings name judge a draft; problems found by checks lower the score and forbid
    acceptance."""
    context = step.context
    checks = [*_word_checks(context), *context.checks]
    problems = [problem for check in checks if (problem := await _run(check, conversation[-1].text, draft))]
    passed = 1 - len(problems) / len(checks) if checks else 1.0
    if context.critic == "checks":
        return Critique(critique="\n".join(problems) or "All checks pass.", score=passed, accept=not problems)
    opinion = (
        _ask_person(conversation, draft, problems)
        if context.critic == "human"
        else await _ask_model(step, conversation, draft)
    )
    return Critique(
        critique="\n".join([opinion.critique, *problems]).strip(),
        score=min(opinion.score, passed),
        accept=opinion.accept and not problems,
    )


async def _ask_model(step: Step[ReflectionContext], conversation: Sequence[BaseMessage], draft: str) -> Critique:
    prompt = prompts.CRITICISE.format_messages(
        instructions=step.context.reflect_prompt or prompts.REFLECT,
        request=request_text(conversation),
        draft=quoted("draft", draft),
    )
    return await ask(step, step.context.critic_model or step.context.model, prompt, Critique)


def _ask_person(conversation: Sequence[BaseMessage], draft: str, problems: list[str]) -> Critique:
    """Pause the run until a person answers; what they answer is asked again if it cannot be understood."""
    question: dict[str, Any] = {
        "request": conversation[-1].text,
        "draft": draft,
        "problems": problems,
        "answer_with": "'accept', a critique as text, or {critique, score (0..1), accept}",
    }
    while True:
        try:
            return _understood(interrupt(question))
        except ValidationError as error:
            question = {**question, "error": str(error.errors()[0]["msg"])}


def _understood(reply: Any) -> Critique:
    if reply is True or (isinstance(reply, str) and reply.strip().casefold() in ACCEPTING):
        return Critique(critique="", score=1, accept=True)
    if isinstance(reply, str):
        return Critique(critique=reply, score=0.5, accept=False)
    if isinstance(reply, dict):
        accept = bool(reply.get("accept", False))
        return Critique.model_validate({"critique": "", "score": 1.0 if accept else 0.5, **reply, "accept": accept})
    return Critique.model_validate(reply)


async def _run(check: Check, request: str, draft: str) -> str:
    problem = check(request, draft)
    return (await problem if inspect.isawaitable(problem) else problem) or ""


def _word_checks(context: ReflectionContext) -> list[Check]:
    low, high = context.min_words, context.max_words

    def too_short(_: str, draft: str) -> str | None:
        words = len(draft.split())
        return f"The draft has {words} words; at least {low} are needed." if low is not None and words < low else None

    def too_long(_: str, draft: str) -> str | None:
        words = len(draft.split())
        return (
            f"The draft has {words} words; at most {high} are allowed." if high is not None and words > high else None
        )

    return [check for check, bound in ((too_short, low), (too_long, high)) if bound is not None]
