"""What a conversational agent puts into its memory of a user: what both have said, and the facts in it."""

import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage

from reflective_agents.graphs._memory.citing import uncited
from reflective_agents.graphs._memory.recall import clock, open_memory_of_user
from reflective_agents.graphs._memory.state import MemoryState, Recalled
from reflective_agents.memory.reflection import normalised
from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.remembering.remember import memories_text
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import memory as memory_prompts
from reflective_agents.prompts import recall as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.memories import LEAST, Fact, Facts, Kind, Memory, new_memory
from reflective_agents.state.settings.memory import MemoryContext

if TYPE_CHECKING:
    from reflective_agents.memory.stream import MemoryStream

LONGEST = 1000
"""Characters of one memory; what is said at greater length becomes several."""
MOST_PARTS = 20
"""Memories that one message may become; the rest is left to the thread."""
UNRATED = 5.0
"""Importance of what could not be rated."""
KNOWN = 20
"""Latest facts that are shown beside those retrieved when new ones are written down."""
_FACTS: tuple[Kind, ...] = ("fact",)


def parts(text: str) -> list[str]:
    """Split a message into texts of memories: one, or several where it is long."""
    # Cut before it is wrapped, which would take long for megabytes; twice as much, since wrapping leaves blanks out.
    text = text.strip()[: 2 * MOST_PARTS * LONGEST]
    return textwrap.wrap(text, LONGEST, replace_whitespace=False, break_on_hyphens=False)[:MOST_PARTS]


async def remember(step: Step[MemoryContext], state: MemoryState) -> LimitReached | ModelFailed | None:
    """Put what both have said into the memory, and the facts that the user's words hold, each once however often a run
    repeats this.

    The turns are observations: what the user said is as important as the most important fact in it, what the assistant
    answered is not, and no fact rests on it.

    Args:
        step: The node that remembers.
        state: The run, with what was perceived, and the reply.

    Returns:
        Why the facts could not be had, if they could not: then what the user said is of middling importance.

    Raises:
        LimitReached, ModelFailed: as `memory.stream.MemoryStream.add`; then nothing is added.
    """
    stream = await open_memory_of_user(step)
    now = time.time()
    known = await _known_facts(stream, state["memories"])
    facts: Sequence[Fact] = ()
    failed: LimitReached | ModelFailed | None = None
    try:
        facts = await _facts(step, state, known)
    except (LimitReached, ModelFailed) as reason:
        failed = reason
    turns = _turns(state, now)
    by_user = [turn for turn in turns if turn.get("speaker") == prompts.USER]
    evidence = [turn["id"] for turn in by_user]
    memories = _new(_memories(state, facts, known, evidence), known)
    most_important = max((memory["importance"] for memory in memories), default=LEAST)
    for turn in by_user:
        turn["importance"] = UNRATED if failed else max(most_important, LEAST)
    # A millisecond apart, so that the order stays.
    for index, memory in enumerate(memories, len(turns)):
        memory["created"] = memory["accessed"] = now + index / 1000
    change = await stream.add([*turns, *memories])
    texts = [memory["text"] for memory in memories]
    step.emit("remembered", memories=len(change.added), facts=texts, forgotten=len(change.forgotten))
    return failed


def _turns(state: MemoryState, now: float) -> list[Memory]:
    spoken = [(prompts.USER, text) for text in state["perceived"]]
    spoken += [(prompts.ASSISTANT, text) for text in parts(uncited(state["reply"]))]
    turns = []
    for index, (speaker, text) in enumerate(spoken):
        turn = new_memory(
            text,
            created=now + index / 1000,
            key=f"{state['run_id']} {index}",
            speaker=speaker,
            conversation=state.get("conversation", ""),
        )
        turns.append(turn)
    return turns


def _memories(
    state: MemoryState, facts: Sequence[Fact], known: Sequence[Memory], evidence: Sequence[str]
) -> Iterator[Memory]:
    """Make memories of facts, and then of what remains of those that they end in part."""
    key = f"{state['run_id']} fact"
    conversation = state.get("conversation", "")
    for index, fact in enumerate(facts):
        superseded = _superseded(fact, known)
        yield new_memory(
            fact.statement,
            created=0.0,
            kind="fact",
            importance=fact.importance,
            evidence=evidence,
            key=f"{key} {index}",
            conversation=conversation,
            about=fact.about,
            topic=fact.topic,
            since=fact.since,
            supersedes=[memory["id"] for memory in superseded],
        )
    for index, fact in enumerate(facts):
        if earlier := _superseded(fact, known):
            yield from _remains(fact, earlier, evidence, f"{key} {index} remains", conversation)


def _remains(
    fact: Fact, earlier: Sequence[Memory], evidence: Sequence[str], key: str, conversation: str
) -> Iterator[Memory]:
    """Make memories of what remains of the earlier facts that a fact ends in part."""
    grounds: list[str] = []
    for memory in earlier:
        grounds += memory["evidence"]
    importance = max(memory["importance"] for memory in earlier)
    for number, text in enumerate(fact.remains):
        yield new_memory(
            text,
            created=0.0,
            kind="fact",
            importance=importance,
            evidence=[*grounds, *evidence],
            key=f"{key} {number}",
            conversation=conversation,
            about=earlier[0].get("about", ""),
            topic=earlier[0].get("topic"),
            since=earlier[0].get("since", ""),
        )


def _superseded(fact: Fact, known: Sequence[Memory]) -> list[Memory]:
    """Return the known facts that a new one supersedes by their numbers; a number that none has is passed over."""
    return [known[number - 1] for number in fact.supersedes if 0 < number <= len(known)]


async def _known_facts(stream: "MemoryStream", recalled: Sequence[Recalled]) -> list[Memory]:
    """Collect the facts that still hold and that new ones may supersede: those retrieved, and the latest."""
    facts = [memory for memory in recalled if memory["kind"] == "fact"]
    retrieved = await stream.get(fact["id"] for fact in facts)
    latest = await stream.latest(KNOWN, _FACTS, archived=True)
    by_id = {fact["id"]: fact for fact in chain(retrieved, latest) if "until" not in fact}
    return sorted(by_id.values(), key=lambda fact: fact["created"])


async def _facts(step: Step[MemoryContext], state: MemoryState, known: Sequence[Memory]) -> list[Fact]:
    turns: list[str] = []
    before = [message.text for message in state["messages"][:-1] if isinstance(message, AIMessage)]
    if before:
        turns.append(quoted("before", uncited(before[-1])[-LONGEST:], by=prompts.ASSISTANT))
    for text in state["perceived"]:
        turns.append(quoted("said", text, by=prompts.USER))
    turns.append(quoted("answer", uncited(state["reply"])[:LONGEST], by=prompts.ASSISTANT))
    facts = f"Known already:\n{memories_text(known, clock)}\n\n" if known else ""
    now = time.time()
    day = f"{datetime.fromtimestamp(now, UTC):%A}"
    prompt = memory_prompts.KEEP.format_messages(now=clock(now), day=day, known=facts, said="\n".join(turns))
    return (await ask(step, step.context.model, prompt, Facts)).facts


def _new(facts: Iterable[Memory], known: Sequence[Memory]) -> list[Memory]:
    """Select the facts that are not known yet, without repetitions."""
    texts = {normalised(fact["text"]) for fact in known}
    by_words: dict[str, Memory] = {}
    for fact in facts:
        by_words.setdefault(normalised(fact["text"]), fact)
    return [fact for words, fact in by_words.items() if words and words not in texts]
