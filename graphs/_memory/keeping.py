"""What a conversational agent puts into its memory of a user: what both have said, and the facts in it."""

import textwrap
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain

from langchain_core.messages import AIMessage

from reflective_agents.graphs._memory.citing import uncited
from reflective_agents.graphs._memory.recall import clock, open_memory_of_user
from reflective_agents.memory.reflection import normalised
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.remembering.remember import memories_text
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import memory as memory_prompts
from reflective_agents.prompts import recall as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.memories import LEAST, Fact, Facts, Kind, Memory, new_memory
from reflective_agents.state.remembering import MemoryState, Recalled
from reflective_agents.state.settings.memory import MemoryContext

LONGEST = 1000
"""Characters of one memory; what is said at greater length becomes several."""
MOST_PARTS = 20
"""Memories that one message may become; the rest is left to the thread."""
UNRATED = 5
"""Importance of what could not be rated."""
KNOWN = 20
"""Latest facts that are shown beside those retrieved when new ones are written down."""
_FACTS: tuple[Kind, ...] = ("fact",)


def parts(text: str) -> list[str]:
    """Split a message into texts of memories: one, or several where it is long."""
    said = text.strip()[: 2 * MOST_PARTS * LONGEST]
    return textwrap.wrap(said, LONGEST, replace_whitespace=False, break_on_hyphens=False)[:MOST_PARTS]


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
    stream, now, failed = await open_memory_of_user(step), time.time(), None
    known = await _known(stream, state["memories"])
    facts: list[Fact] = []
    importance: float = UNRATED
    try:
        facts = _new(await _facts(step, state, known), known)
        importance = max([LEAST, *(float(one.importance) for one in facts)])
    except (LimitReached, ModelFailed) as reason:
        failed = reason
    turns = _turns(state, now, importance)
    evidence = [one["id"] for one in turns if one.get("speaker") == prompts.USER]
    kept = [
        new_memory(
            one.statement,
            created=now + (len(turns) + place) / 1000,
            kind="fact",
            importance=one.importance,
            evidence=evidence,
            key=f"{state['run_id']} fact {place}",
            conversation=state.get("conversation", ""),
            about=one.about,
            since=one.since,
            supersedes=[known[number - 1]["id"] for number in one.supersedes if 0 < number <= len(known)],
        )
        for place, one in enumerate(facts)
    ]
    change = await stream.add([*turns, *kept])
    texts = [one["text"] for one in kept]
    step.emit("remembered", memories=len(change.added), facts=texts, forgotten=len(change.forgotten))
    return failed


def _turns(state: MemoryState, now: float, importance: float) -> list[Memory]:
    said = [(prompts.USER, text, importance) for text in state["perceived"]]
    said += [(prompts.ASSISTANT, text, LEAST) for text in parts(uncited(state["reply"]))]
    return [
        new_memory(
            text,
            created=now + place / 1000,
            importance=weight,
            key=f"{state['run_id']} {place}",
            speaker=speaker,
            conversation=state.get("conversation", ""),
        )
        for place, (speaker, text, weight) in enumerate(said)
    ]


async def _known(stream: MemoryStream, recalled: Sequence[Recalled]) -> list[Memory]:
    """Collect the facts that still hold and that new ones may supersede: those retrieved, and the latest."""
    retrieved = await stream.get([one["id"] for one in recalled if one["kind"] == "fact"])
    latest = await stream.latest(KNOWN, _FACTS, archived=True)
    by_id = {one["id"]: one for one in chain(retrieved, latest) if "until" not in one}
    return sorted(by_id.values(), key=lambda one: one["created"])


async def _facts(step: Step[MemoryContext], state: MemoryState, known: Sequence[Memory]) -> list[Fact]:
    before = [message.text for message in state["messages"][:-1] if isinstance(message, AIMessage)][-1:]
    said = [quoted("before", uncited(text)[-LONGEST:], by=prompts.ASSISTANT) for text in before]
    said += [quoted("said", text, by=prompts.USER) for text in state["perceived"]]
    said.append(quoted("answer", uncited(state["reply"])[:LONGEST], by=prompts.ASSISTANT))
    facts = "Known already:\n" + memories_text(known, clock) + "\n\n" if known else ""
    now = time.time()
    day = f"{datetime.fromtimestamp(now, UTC):%A}"
    prompt = memory_prompts.KEEP.format_messages(now=clock(now), day=day, known=facts, said="\n".join(said))
    return (await ask(step, step.context.model, prompt, Facts)).facts


def _new(facts: Sequence[Fact], known: Sequence[Memory]) -> list[Fact]:
    """Select the facts that are not known yet, without repetitions."""
    texts = {normalised(one["text"]) for one in known}
    by_words = {normalised(one.statement): one for one in facts}
    return [one for words, one in by_words.items() if words and words not in texts]
