"""Critics of a draft: a model, a person, plain functions, each giving the same critique."""

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage
from langgraph.types import interrupt
from pydantic import JsonValue, ValidationError
from typing_extensions import TypedDict

from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted, request_text
from reflective_agents.nodes.evidence.looking_up import look_up
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.verdict import Verdict, verify_answer
from reflective_agents.prompts import looking_up
from reflective_agents.prompts import reflection as prompts
from reflective_agents.prompts.search import TODAY
from reflective_agents.state.schemas import Critique
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.text.validation import in_plain_words
from reflective_agents.text.words import count_words

NO_PROBLEM = "All verifiers accept it."
NO_CHECK = "there is no verifier"
"""Why a draft stays unjudged."""
ACCEPTING = {"", "accept", "accepted", "ok", "yes", "y"}


class Draft(TypedDict):
    """One round: the text, and what the critic said of it. `score` is None until it has been judged."""

    round: int
    id: str
    text: str
    critique: str
    score: float | None
    accepted: bool


class Judged(NamedTuple):
    """What the critic said of an earlier draft, with its score (0..1)."""

    critique: str
    score: float


def judgement_of(draft: Draft | None) -> Judged | None:
    """Return what the critic said of a draft; None if there is none, or nobody has judged it."""
    return None if draft is None or draft["score"] is None else Judged(draft["critique"], draft["score"])


def has_critic(context: ReflectionContext) -> bool:
    """Tell whether anybody criticises: a model, a person, or at least one verifier."""
    return context.critic != "checks" or context.is_verified


async def criticise(
    step: Step[ReflectionContext],
    conversation: Sequence[BaseMessage],
    draft: str,
    before: Judged | None = None,
    run_id: str = "",
) -> Critique:
    """Let the critic that the settings name judge a draft; what verifiers find lowers the score and forbids acceptance.

    Args:
        step: The node that asks.
        conversation: What the draft is for.
        draft: The text.
        before: What was said of the draft before it; None if there is none.
        run_id: The run, in which equal drafts are verified once; empty if they are not.
    """
    verdict = await verify_answer(step, run_id, conversation, draft)
    problems = [verdict.feedback] if verdict and verdict.feedback else []
    passed = _passed(verdict)
    allowed = verdict is None or verdict.allows
    if step.context.critic == "checks":
        accepted = verdict is not None and verdict.accepted is True
        words = "\n".join(problems) or (NO_PROBLEM if accepted else "")
        return Critique(critique=words, score=passed, accept=accepted)
    if step.context.critic == "human":
        opinion = _ask_person(conversation, draft, problems)
    else:
        opinion = await _ask_model(step, conversation, draft, problems, before, run_id)
    return Critique(
        critique="\n".join([opinion.critique, *problems]).strip(),
        score=min(opinion.score, passed),
        accept=opinion.accept and allowed,
    )


def _passed(verdict: Verdict | None) -> float:
    """Return the score (0..1) that verifiers leave to a draft. Those that only rank and give none say nothing against
    it; others without a score have failed."""
    if verdict is None or (verdict.score is None and verdict.only_ranks):
        return 1.0
    return verdict.score or 0.0


async def _ask_model(
    step: Step[ReflectionContext],
    conversation: Sequence[BaseMessage],
    draft: str,
    problems: Sequence[str],
    before: Judged | None,
    run_id: str,
) -> Critique:
    model = step.context.critic_model or step.context.model
    text, _ = split_references(draft)
    facts = [prompts.LENGTH.format(words=count_words(text), characters=len(text)), *problems]
    checked = [quoted("checked", "\n".join(facts))]
    if before:
        checked.append(quoted("critique", before.critique, of="the draft before", score=f"{before.score:.2f}"))
    if step.context.critic_tools:
        material = f"{request_text(conversation)}\n{quoted('draft', draft)}"
        found = await look_up(step, run_id, model, material, step.context.critic_tools)
        if found:
            checked.append(f"{looking_up.FOUND}\n{found}")
    prompt = prompts.CRITICISE.format_messages(
        instructions=step.context.reflect_prompt or f"{TODAY.format(today=today())} {prompts.REFLECT}",
        request=request_text(conversation),
        draft=quoted("draft", draft),
        checked="\n".join(checked),
    )
    return await ask(step, model, prompt, Critique, judging=True)


def _ask_person(conversation: Sequence[BaseMessage], draft: str, problems: list[str]) -> Critique:
    """Pause the run until a person answers; what they answer is asked again if it cannot be understood."""
    question: dict[str, str | list[str]] = {
        "request": conversation[-1].text,
        "draft": draft,
        "problems": problems,
        "answer_with": "'accept', a critique as text, or {critique, score (0..1), accept}",
    }
    while True:
        try:
            return _read_critique(interrupt(question))
        except ValidationError as error:
            question = {**question, "error": in_plain_words(error.errors()[0]["msg"])}


def _read_critique(reply: JsonValue) -> Critique:
    if reply is True or (isinstance(reply, str) and reply.strip().casefold() in ACCEPTING):
        return Critique(critique="", score=1, accept=True)
    if isinstance(reply, str):
        return Critique(critique=reply, score=0.5, accept=False)
    if isinstance(reply, dict):
        accept = bool(reply.get("accept", False))
        return Critique.model_validate({"critique": "", "score": 1.0 if accept else 0.5, **reply, "accept": accept})
    return Critique.model_validate(reply)
