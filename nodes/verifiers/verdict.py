"""The verdict of a run's verifiers on an answer. Every strategy that answers asks for it here.

All verifiers run at once, once for each answer of a run, each with a timeout. An answer is accepted if every verifier
that is a must accepts it; the others only rank. One that raises or takes too long gives no verdict.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from reflective_agents.nodes.asking.transcript import without_lessons
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.sources import thread_sources
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.memo import at_once, memo_of
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers import function, measure, program, reward, rubric
from reflective_agents.nodes.verifiers.finding import Case, Finding, NoVerdict
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, Misuse, ModelFailed
from reflective_agents.state.outcome import UNCHECKED, Appraisal, Outcome, VerifiedBy, with_reason
from reflective_agents.state.verifier_forms import (
    Command,
    Form,
    Function,
    Language,
    Length,
    Pattern,
    ProgramTests,
    Reward,
    Rubric,
    Schema,
    VerifiedRun,
)
from reflective_agents.state.verifiers import VerifiedContext
from reflective_agents.text.joined import joined

Verify = Callable[[Step[Context], Any, Case], Awaitable[Finding]]
VERIFY: Mapping[type[Form], Verify] = {
    Function: function.verify,
    Length: measure.length,
    Pattern: measure.pattern,
    Schema: measure.schema,
    Rubric: rubric.verify,
    Language: measure.language,
    ProgramTests: program.tests,
    Command: program.command,
    Reward: reward.verify,
}
"""How each kind of verifier works."""
PROGRAMS = (ProgramTests, Command)
"""What an outcome calls `tests`."""
REWARDERS = ("environment", "tests")
"""What an environment calls itself in an outcome."""
TO_END = 1.0
"""Seconds in which a verifier that is cancelled may end."""


class Verdict(NamedTuple):
    """What the verifiers say of an answer together.

    Attributes:
        by: What the outcome calls them.
        score: The mean of their scores by their weights, 0..1; None if none has given one.
        accepted: Whether all that must accept the answer do; None if one gives no verdict, or all only rank.
        feedback: What is wrong with it, in their words.
        missing: Which have given no verdict, and why; a run whose verdict lacks one that decides is never solved.
        only_ranks: Whether none of them decides.
    """

    by: VerifiedBy
    score: float | None
    accepted: bool | None
    feedback: str
    missing: str
    only_ranks: bool

    @property
    def allows(self) -> bool:
        """Whether what else accepts the answer may count."""
        return self.accepted is True or self.only_ranks

    def solves(self, others: bool | None) -> bool:
        """Tell whether the answer solves its task.

        Args:
            others: Whether all else that judges the answer accepts it; None if nothing else does.
        """
        return self.accepted is True if others is None else others and self.allows

    @property
    def reason(self) -> str:
        """The verdict in words, for outcomes."""
        scored = "" if self.score is None else f" with a score of {self.score:.2f}"
        if self.accepted:
            return f"the verifiers accept the answer{scored}"
        if self.accepted is None:
            return self.missing
        feedback = " ".join(self.feedback.split())[:300]
        return joined([f"the verifiers do not accept the answer{scored}", feedback, self.missing], ": ")


def is_verified(step: Step[Context]) -> bool:
    """Tell whether the settings of a run have verifiers."""
    return isinstance(step.context, VerifiedContext) and step.context.is_verified


async def verify_answer(
    step: Step[Context],
    run_id: str,
    conversation: Sequence[BaseMessage],
    answer: str,
    sources: Mapping[str, str] | None = None,
) -> Verdict | None:
    """Return what the verifiers say of an answer; None where the settings have none.

    Args:
        step: The node that asks.
        run_id: The run, in which equal answers share a verdict; empty if they do not.
        conversation: What is answered: its last message is the request.
        answer: The answer; its list of references is left out.
        sources: What it rests on beside the sources of the thread, by the marks that cite it.
    """
    context = step.context
    if not isinstance(context, VerifiedContext) or not context.is_verified:
        return None
    body, _ = split_references(answer)
    body = body.strip()
    messages: list[Any] = [*without_lessons(conversation)]
    known = Evidence(thread_sources(conversation)).passages
    run = VerifiedRun(messages=[*messages], sources={**known, **(sources or {})})
    case = Case(messages[-1].text, body, run, run_id)
    if not run_id:
        return await _verdict(step, context, case)
    key = ("verdict", body, repr(context.forms), context.threshold)
    verdict, _ = await memo_of(run_id).once(key, partial(_verdict, step, context, case))
    return verdict


async def _verdict(step: Step[Context], context: VerifiedContext, case: Case) -> Verdict:
    forms = context.forms
    results = await at_once([_in_time(step, context, form, case) for form in forms])
    total, weights = 0.0, 0.0
    refusing: list[Form] = []
    silent: list[Form] = []
    feedback: list[str] = []
    missing: list[str] = []
    for form, found in zip(forms, results, strict=True):
        if isinstance(found, str):
            silent.append(form)
            missing.append(f"{name_of(form)} gives no verdict: {found}")
            continue
        weights += form.weight
        total += form.weight * found.score
        if not _accepts(form, found, context):
            refusing.append(form)
            feedback.append(_feedback(form, found))
    deciding = [form for form in forms if form.decides]
    are_programs = bool(deciding) and all(isinstance(form, PROGRAMS) for form in deciding)
    verdict = Verdict(
        by="tests" if are_programs else "verifiers",
        score=min(total / weights, 1.0) if weights else None,
        accepted=_decide(refusing, silent, deciding),
        feedback=joined(feedback),
        missing="; ".join(missing),
        only_ranks=not deciding,
    )
    step.emit("verified", **verdict._asdict())
    return verdict


def _feedback(form: Form, found: Finding) -> str:
    """Return what is wrong with an answer; empty for a verifier that only ranks, and says nothing."""
    return found.feedback or (f"{name_of(form)} does not accept this." if form.decides else "")


def _decide(refusing: Iterable[Form], silent: Iterable[Form], deciding: Sequence[Form]) -> bool | None:
    """Say whether an answer is accepted, by those that must accept it: some refuse it, some give no verdict."""
    if any(form.decides for form in refusing):
        return False
    if not deciding or any(form.decides for form in silent):
        return None
    return True


def _accepts(form: Form, found: Finding, context: VerifiedContext) -> bool:
    return not found.refused and found.score >= (form.threshold or context.threshold)


async def _in_time(step: Step[Context], context: VerifiedContext, form: Form, case: Case) -> Finding | str:
    """Ask one verifier; return why, if it gives no verdict."""
    seconds = min(context.verifier_timeout, step.meter.seconds_left)
    task = asyncio.ensure_future(VERIFY[type(form)](step, form, case))
    try:
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait([task], timeout=TO_END)
        return f"it takes more than {seconds:g} seconds"
    except (NoVerdict, LimitReached, ModelFailed, Misuse) as error:  # misuse: what was there when the run began
        return str(error)
    finally:
        task.cancel()


def name_of(form: Form) -> str:
    """Return what a verifier is called in words: its own name, else that of the function, else its kind."""
    if isinstance(form, Function):
        name = getattr(form.function, "__name__", None) or type(form.function).__name__
        return form.name or (name if name != "<lambda>" else "a verifier")
    return form.name or f"the {form.kind}"


def with_verdict(reached: Outcome | None, appraisal: Appraisal, verdict: Verdict) -> tuple[Outcome | None, Appraisal]:
    """Return what has ended a run and what is known of its answer, with what the verifiers say. What they refuse, or
    anybody else has refused, is not solved; of what they accept an environment stays the one who has verified it.

    Args:
        reached: What has ended the run.
        appraisal: What is known of the answer otherwise.
        verdict: What the verifiers say of it.
    """
    by = appraisal.by or (reached.get("verified_by") if reached else None)
    stands = by in REWARDERS or appraisal.accepted is False
    if verdict.only_ranks or (verdict.accepted and stands):
        return reached, appraisal
    if reached and "verified_by" in reached:
        reached = reached.copy()
        del reached["verified_by"]
    if verdict.accepted is None:
        return with_reason(reached, verdict.reason), UNCHECKED
    reason = joined([appraisal.reason, verdict.reason], "; ")
    return reached, Appraisal(verdict.by, verdict.accepted, reason, appraisal.answered)
