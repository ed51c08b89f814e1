"""What nodes do with an agent's long-term memory: open it, rate what goes into it, and reflect on it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.prompts import ChatPromptTemplate
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory.reflection import RECENT, SHOWN, THRESHOLD, Drawn, draw, is_due
from memory.scoring import PAPER, Weights
from memory.stream import MemoryStream
from nodes.chat import ask
from nodes.memo import at_once
from nodes.step import Step
from nodes.transcript import quoted
from prompts import memory as prompts
from state.context import Model
from state.memories import Insights, Memory, Questions, ratings_of

RATED_AT_ONCE = 20
"""Memories that are rated in one call."""


async def open_memory(
    step: Step[Any], owner: str, embeddings: str | Embeddings | None = None, *, max_memories: int = 100_000
) -> MemoryStream:
    """Open an agent's memory in the store of the graph, within the limits of the run.

    A graph without a store has the one of the process.

    Raises:
        Misuse, UnknownModel, MissingKey: as `MemoryStream.open`.
    """
    store = get_runtime().store or store_of_process()
    return await MemoryStream.open(store, owner, embeddings, meter=step.meter, max_memories=max_memories)


@cache
def store_of_process() -> BaseStore:
    """The store of all graphs that have none of their own. It lasts as long as the process."""
    return InMemoryStore()


def memories_text(memories: Sequence[Memory]) -> str:
    """Memories as quoted, numbered text for a prompt, from 1."""
    return "\n".join(
        quoted("memory", one["text"], number=number, kind=one["kind"]) for number, one in enumerate(memories, 1)
    )


async def rate(step: Step[Any], model: Model, texts: Sequence[str], *, who: str = "") -> list[int]:
    """How important memories are, 1..10, twenty of them in a call, all calls at once.

    Args:
        step: The node that asks.
        model: Which model to ask.
        texts: What is to be remembered.
        who: Who the agent is, in a few words.

    Raises:
        InvalidOutput, LimitReached, ModelFailed: as `nodes.chat.ask`.
    """
    parts = [texts[start : start + RATED_AT_ONCE] for start in range(0, len(texts), RATED_AT_ONCE)]
    rated: list[list[int]] = await at_once([_rate(step, model, part, who) for part in parts])
    return [rating for part in rated for rating in part]


async def _rate(step: Step[Any], model: Model, texts: Sequence[str], who: str) -> list[int]:
    memories = "\n".join(quoted("memory", text, number=number) for number, text in enumerate(texts, 1))
    prompt = prompts.RATE.format_messages(who=_who(who), memories=memories)
    return (await ask(step, model, prompt, ratings_of(len(texts)))).ratings


async def reflect(
    step: Step[Any],
    model: Model,
    stream: MemoryStream,
    *,
    now: float,
    who: str = "",
    threshold: float = THRESHOLD,
    weights: Weights = PAPER,
) -> list[Memory]:
    """Reflect if that is due (Generative Agents, section 4.2): three questions about the last 100 memories, and for
    each of them five insights from what is retrieved for it, in 1 + 3 calls that wait for each other once.

    The insights are added at once, with the place up to where they go: a kill leaves all of them or none, and done
    again it changes nothing. An insight that names no memory it was shown is refused, and counted as a parse failure.

    Args:
        step: The node that reflects.
        model: Which model to ask.
        stream: The agent's memory.
        now: Seconds of the agent's clock.
        who: Who the agent is, in a few words.
        threshold: Importance of new observations beyond which a reflection is due.
        weights: How memories are retrieved for the questions.

    Returns:
        The insights, already in the memory; none if no reflection was due.

    Raises:
        InvalidOutput, LimitReached, ModelFailed: as `nodes.chat.ask`; then nothing was added.
    """
    pending = await stream.pending()
    if not is_due(pending, threshold):
        return []
    recent = await stream.latest(RECENT)
    questions = (await ask(step, model, _prompt(prompts.ASK, who, recent), Questions)).questions

    # One after the other, since what one question finds counts as accessed for the next.
    found = [await stream.retrieve(question, k=SHOWN, now=now, weights=weights) for question in questions]

    async def conclude(place: int, question: str) -> Drawn:
        shown = [one.memory for one in found[place]]
        prompt = _prompt(prompts.CONCLUDE, who, shown, question=quoted("question", question))
        said = await ask(step, model, prompt, Insights)
        return draw(said, shown, key=f"reflection {stream.owner} {pending.latest.id} {place}", now=now)

    drawn: list[Drawn] = await at_once([conclude(place, question) for place, question in enumerate(questions)])
    insights = [insight for one in drawn for insight in one.insights]
    await stream.add(insights, reflected=pending.latest)
    _tell(step, pending.importance, questions, insights, [text for one in drawn for text in one.refused])
    return await stream.get(insight["id"] for insight in insights)


def _tell(step: Step[Any], importance: float, questions: list[str], insights: list[Memory], refused: list[str]) -> None:
    for text in refused:
        step.meter.count(parse_failures=1)
        step.emit("refused_insight", insight=text, problem="it names none of the memories that were shown")
    step.emit("reflected", importance=importance, questions=questions, insights=len(insights), refused=len(refused))


def _prompt(template: ChatPromptTemplate, who: str, memories: Sequence[Memory], **texts: str) -> list[Any]:
    return template.format_messages(who=_who(who), memories=memories_text(memories), **texts)


def _who(who: str) -> str:
    return quoted("agent", who) + "\n\n" if who else ""
