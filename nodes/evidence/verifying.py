"""Holding an answer against its sources before it is handed over: one call that checks what each of its sentences rests
on, and where something is not supported one revision of the sentences in question (RARR, arXiv 2210.08726)."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage
from pydantic import BaseModel, Field

from reflective_agents.models.context_window import longest_estimated
from reflective_agents.nodes.answer_stream import was_streamed
from reflective_agents.nodes.asking.chat import ask, model_of
from reflective_agents.nodes.asking.transcript import request_text
from reflective_agents.nodes.evidence.citations import resolve
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.sources import Sources, thread_sources
from reflective_agents.nodes.evidence.support import (
    LONGEST_EXCERPT,
    MOST_SENTENCES,
    Sentence,
    SupportCheck,
    assess,
    cited_marks,
    is_verified,
    read_sentences,
    revision_prompt,
    support_prompt,
    to_revise,
    unsupported,
)
from reflective_agents.nodes.step import Step
from reflective_agents.prompts.support import FAULTS
from reflective_agents.state.context import Context, Model
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.families import SourcedContext
from reflective_agents.state.outcome import Appraisal, Outcome, pluralize, with_reason
from reflective_agents.state.run import RunState
from reflective_agents.state.support import Level, Support, SupportedSentence

MOST_NAMED = 3
"""Sentences that an outcome names."""
REVISION_CALLS = 2
"""Calls of a revision: one that rewrites, one that checks again."""


class Evidence(NamedTuple):
    """What an answer rests on.

    Attributes:
        sources: What the model has read, by number.
        letter: What stands before a number where it is cited, as in [m1].
        revisable: Whether there is room for a revision.
        without_passage: What a sentence is that cites only sources without passages.
        held: Whether the answer is to be held against the sources, and not only verifiers are to be given them.
    """

    sources: Sources
    letter: str = ""
    revisable: bool = True
    without_passage: Level = "unseen"
    held: bool = True

    @property
    def passages(self) -> dict[str, str]:
        """What can be quoted from each source, by the mark that cites it; empty where the model has read nothing."""
        return {f"{self.letter}{number}": source.quotable for number, source in self.sources.items()}

    def cited_in(self, body: str) -> set[str]:
        """Return the marks of the sources that an answer cites."""
        return cited_marks(read_sentences(body, self.passages))


NO_EVIDENCE = Evidence({})
"""Of an answer that rests on no sources."""


class RevisedSentence(BaseModel):
    """A sentence anew."""

    number: int = Field(description="The number of the sentence.")
    text: str = Field(description="The sentence anew, with its citations. Empty if it is to be left out.")


class Revision(BaseModel):
    """The sentences that are written anew."""

    sentences: list[RevisedSentence]


def is_open(
    step: Step[Context], answer: AIMessage, reached: Outcome | None, appraisal: Appraisal, evidence: Evidence
) -> bool:
    """Tell whether an answer is still to be held against its sources: nobody else has verified or refused it."""
    if not isinstance(step.context, SourcedContext) or not (step.context.verify_sources and evidence.held):
        return False
    if not any(source.passages for source in evidence.sources.values()) and not evidence.cited_in(answer.text):
        return False
    return appraisal.by is None and "verified_by" not in (reached or {})


async def verify(
    state: RunState, step: Step[Context], answer: AIMessage, evidence: Evidence
) -> tuple[AIMessage, Support]:
    """Check an answer against its sources, and have the sentences revised that these do not support.

    What was streamed stays as it is. A check that cannot be had is left out, with the reason.

    Args:
        state: The state of the run.
        step: The node that ends it.
        answer: The answer, with its list of references.
        evidence: What it rests on.
    """
    try:
        body, _ = split_references(answer.text)
        support = await _check(state, step, body, evidence)
    except (LimitReached, ModelFailed) as error:
        return answer, _left_out(step, str(error))
    may_revise = evidence.revisable and not was_streamed(answer) and step.meter.calls_left >= REVISION_CALLS
    if support["left_out"] or not may_revise:
        return answer, support
    if not to_revise(read_sentences(body, evidence.passages), support, evidence.passages):
        return answer, support
    try:
        revised = await _revise(state, step, body, support, evidence)
        if revised == body:
            return answer, support
        again = await _check(state, step, revised, evidence)
    except (LimitReached, ModelFailed):
        return answer, support
    if _is_worse(again, support):
        return answer, support
    return AIMessage(resolve(revised, evidence.sources, "").text, id=answer.id), again


def _is_worse(revised: Support, support: Support) -> bool:
    """Tell whether a revised answer says less that is supported, answers no longer, or could not be checked."""
    answers_no_longer = revised["answered"] == "no" and support["answered"] != "no"
    if revised["left_out"] or answers_no_longer:
        return True
    return len(unsupported(revised)) > len(unsupported(support))


async def _check(state: RunState, step: Step[Context], body: str, evidence: Evidence) -> Support:
    passages = evidence.passages
    if not any(passages.values()) and evidence.without_passage == "unseen":
        return _left_out(step, "they were read for an earlier answer, and are not at hand")
    sentences = read_sentences(body, passages)
    if len(sentences) > MOST_SENTENCES:
        return _left_out(step, f"it has {len(sentences)} sentences, and {MOST_SENTENCES} can be checked at once")
    checker = _checker(step)
    prompt = support_prompt(request_text(state["messages"]), sentences, passages, _longest(step, checker))
    form = await ask(step, checker, prompt, SupportCheck, judging=True)
    support = assess(sentences, form, passages, evidence.without_passage)
    texts = [sentence["text"] for sentence in unsupported(support)]
    step.emit("support", answered=support["answered"], verified=is_verified(support), unsupported=texts)
    return support


def _checker(step: Step[Context]) -> Model:
    judge = step.context.judge_model if isinstance(step.context, SourcedContext) else None
    return judge or step.context.model


def _longest(step: Step[Context], model: Model) -> float:
    """Return how many estimated tokens a prompt with the passages may have: half of the longest that its model takes,
    so that the form has its room and what is shown is read with care."""
    longest = longest_estimated(model_of(step, model), step.meter)
    return inf if longest is None else longest / 2


def _left_out(step: Step[Context], reason: str) -> Support:
    step.emit("support", left_out=reason)
    return Support(answered=None, sentences=[], left_out=reason)


async def _revise(state: RunState, step: Step[Context], body: str, support: Support, evidence: Evidence) -> str:
    """Have the sentences written anew that are not supported; code puts them in their places.

    Raises:
        LimitReached, ModelFailed: if that cannot be had.
    """
    passages = evidence.passages
    sentences = read_sentences(body, passages)
    model = step.context.model
    prompt = revision_prompt(request_text(state["messages"]), sentences, support, passages, _longest(step, model))
    revision = await ask(step, model, prompt, Revision)
    texts = {sentence.number: resolve(sentence.text, evidence.sources, "").body for sentence in revision.sentences}
    named = [sentence for sentence, _ in to_revise(sentences, support, passages) if sentence.number in texts]
    revised = _replaced(body, named, texts)
    if not revised:
        raise ModelFailed("the revision leaves nothing of the answer")
    return revised


def _replaced(body: str, sentences: Sequence[Sentence], texts: dict[int, str]) -> str:
    # From the end, so that the places of the sentences before stay right.
    for sentence in reversed(sentences):
        text = texts[sentence.number].strip()
        before = body[: sentence.begin]
        after = body[sentence.end :]
        body = f"{before}{text}{after}" if text else f"{before.rstrip(' ')} {after.lstrip(' ')}"
    return body.strip()


def without_unsupported(answer: str, support: Support, evidence: Evidence) -> str:
    """Return an answer without the sentences that its sources do not support, as its check names them."""
    sentences = read_sentences(answer, evidence.passages) if support["sentences"] else []
    missing = unsupported(support)
    refused = [
        sentence for sentence, assessed in zip(sentences, support["sentences"], strict=True) if assessed in missing
    ]
    return _replaced(answer, refused, {sentence.number: "" for sentence in refused})


def with_support(reached: Outcome | None, appraisal: Appraisal, support: Support) -> tuple[Outcome | None, Appraisal]:
    """Return what has ended a run and what is known of its answer, by what the check of its sources has brought."""
    reason = support_text(support)
    if is_verified(support):
        return reached, Appraisal("sources", True, reason, answered=True)
    if support["answered"] is not None:
        appraisal = appraisal._replace(answered=support["answered"] != "no")
    return with_reason(reached, reason), appraisal


def support_text(support: Support) -> str:
    """Say in words what the check of an answer against its sources has brought; empty where there is nothing to say of
    an answer that declares that there is none."""
    if support["left_out"]:
        return f"its sources were not checked: {support['left_out']}"
    facts = pluralize(sum(sentence["support"] != "no_fact" for sentence in support["sentences"]), "fact")
    missing = unsupported(support)
    if missing:
        return f"its sources do not fully support {len(missing)} of {facts}: {_named(missing)}"
    if support["answered"] == "no":
        return ""
    supported = f"its sources support what it states: {facts}"
    return f"{supported}; it answers in part" if support["answered"] == "partly" else supported


def _named(sentences: Sequence[SupportedSentence]) -> str:
    named = sentences[:MOST_NAMED]
    return "; ".join(f'"{each["text"]:.{LONGEST_EXCERPT}}" ({FAULTS[each["support"]]})' for each in named)


def with_cited_parts(
    answer: AIMessage, evidence: Evidence, conversation: Sequence[AnyMessage]
) -> tuple[AIMessage, Evidence]:
    """Return an answer with the list of the parts of the user's texts that it cites, and what it rests on."""
    sources = thread_sources(conversation)
    _, references = split_references(answer.text)
    if references or not any(source.passages for source in sources.values()):
        return answer, evidence
    material = "\n".join(message.text for message in conversation)
    text = resolve(answer.text, sources, material, streamed=True).text
    if text != answer.text:
        answer = answer.model_copy(update={"content": text, "id": None})
    return answer, evidence if evidence.sources else Evidence(sources)
