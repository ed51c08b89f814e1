"""What a conversational agent does with its memory of a user: perceive, retrieve, cite, remember."""

import re
import textwrap
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from memory.scoring import Weights
from memory.stream import MemoryStream, Scored
from nodes.remember import open_memory, rate
from nodes.step import Step
from nodes.transcript import quoted
from prompts import recall as prompts
from state.errors import LimitReached, ModelFailed
from state.memories import Memory, new_memory
from state.remembering import MemoryContext, Recalled

LONGEST = 1000
"""Characters of one memory; what is said at greater length becomes several."""
MOST_PARTS = 20
"""Memories that one message may become; the rest is left to the thread."""
QUERY = 2000
"""Characters of a message that memories are looked up for."""
UNRATED = 5
"""Importance of what could not be rated."""
MOST_EVIDENCE, LONGEST_EVIDENCE = 5, 300
"""Memories, and characters of each, that a reflection is shown with."""

_CITATION = re.compile(r"\s?\[\s*m(\d+(?:\s*[,;]\s*m?\d+)*)\s*\]", re.IGNORECASE)


def owner_of(user: str) -> str:
    """Whose memory that of a user is."""
    return f"user/{user}"


async def open_memory_of_user(step: Step[MemoryContext]) -> MemoryStream:
    """Open the memory of the user that the settings name.

    Raises:
        Misuse, UnknownModel, MissingKey: as `nodes.remember.open_memory`.
    """
    context = step.context
    return await open_memory(step, owner_of(context.user), context.embeddings, max_memories=context.max_memories)


def weights_of(context: MemoryContext) -> Weights:
    """How the settings weigh the terms of a retrieval."""
    return Weights(context.recency, context.importance, context.relevance)


def observations(template: str, text: str) -> list[str]:
    """What was said as observations: one, or as many as it takes where it is long."""
    said = text.strip()[: 2 * MOST_PARTS * LONGEST]
    parts = textwrap.wrap(said, LONGEST, replace_whitespace=False, break_on_hyphens=False)
    return [template.format(text=part) for part in parts[:MOST_PARTS]]


async def retrieve(step: Step[MemoryContext], message: str) -> list[Recalled]:
    """The memories that fit a message, numbered from 1, the best one first; a reflection comes with what it rests on.

    Raises:
        LimitReached, ModelFailed: as `memory.stream.MemoryStream.retrieve`.
    """
    context, stream = step.context, await open_memory_of_user(step)
    if not context.retrieved:
        return []
    query, weights = message[:QUERY], weights_of(context)
    found = await stream.retrieve(query, k=context.retrieved, now=time.time(), weights=weights)
    return [_recalled(number, one, await _because(stream, one.memory)) for number, one in enumerate(found, 1)]


async def _because(stream: MemoryStream, memory: Memory) -> list[str]:
    evidence = await stream.get(memory["evidence"][:MOST_EVIDENCE])
    return [textwrap.shorten(one["text"], LONGEST_EVIDENCE, placeholder=" ...") for one in evidence]


def _recalled(number: int, one: Scored, because: list[str]) -> Recalled:
    return Recalled(
        number=number,
        id=one.memory["id"],
        kind=one.memory["kind"],
        text=one.memory["text"],
        because=because,
        created=one.memory["created"],
        score=one.score,
        recency=one.recency,
        importance=one.importance,
        relevance=one.relevance,
        cited=False,
    )


def memories_message(memories: Sequence[Recalled]) -> list[AnyMessage]:
    """Memories as quoted material in front of the question; no message, if there are none."""
    if not memories:
        return []
    text = prompts.REMEMBERED.format(now=_date(time.time()), memories="\n".join(map(_quoted, memories)))
    return [HumanMessage(text)]


def _quoted(one: Recalled) -> str:
    parts = [one["text"], *(f"- because: {text}" for text in one["because"])]
    return quoted("memory", "\n".join(parts), number=f"m{one['number']}", kind=one["kind"], of=_date(one["created"]))


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def cited(text: str) -> set[int]:
    """The numbers of the memories that a text cites."""
    return {int(number) for match in _CITATION.finditer(text) for number in re.findall(r"\d+", match[1])}


def uncited(text: str) -> str:
    """A text without citations of memories: they have a meaning only beside the memories of their turn."""
    return _CITATION.sub("", text)


def only_cited(text: str, count: int) -> str:
    """A text in which only the memories from 1 to `count` are cited; what else looks like a citation is left out."""

    def checked(match: re.Match[str]) -> str:
        kept = [number for number in re.findall(r"\d+", match[1]) if 1 <= int(number) <= count]
        lead = match[0][: match[0].index("[")]
        return f"{lead}[{', '.join(f'm{number}' for number in kept)}]" if kept else ""

    invented = {number for number in cited(text) if not 1 <= number <= count}
    return _CITATION.sub(checked, text) if invented else text


def without_citations(conversation: Sequence[AnyMessage]) -> list[AnyMessage]:
    """A conversation whose earlier answers cite no memories."""
    return [
        message.model_copy(update={"content": uncited(message.content)})
        if isinstance(message, AIMessage) and isinstance(message.content, str)
        else message
        for message in conversation
    ]


async def remember(step: Step[MemoryContext], run_id: str, texts: Sequence[str]) -> LimitReached | ModelFailed | None:
    """Put observations of this moment into the memory, in their order, each once however often a run repeats this.

    Args:
        step: The node that remembers.
        run_id: The run, of which the ids of the memories are made.
        texts: What was perceived.

    Returns:
        Why they could not be rated, if they could not: then they are of middling importance.

    Raises:
        LimitReached, ModelFailed: as `memory.stream.MemoryStream.add`; then nothing is added.
    """
    stream, now, unrated = await open_memory_of_user(step), time.time(), None
    ratings = [UNRATED] * len(texts)
    try:
        ratings = await rate(step, step.context.model, texts, who=prompts.WHO)
    except (LimitReached, ModelFailed) as reason:
        unrated = reason
    memories = [
        new_memory(text, created=now + place / 1000, importance=rating, key=f"{run_id} {place}")
        for place, (text, rating) in enumerate(zip(texts, ratings, strict=True))
    ]
    change = await stream.add(memories)
    step.emit("remembered", memories=len(change.added), importance=ratings, forgotten=len(change.forgotten))
    return unrated
