"""What a conversational agent remembers of a user: retrieved, and shown to the model."""

import asyncio
import re
import textwrap
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from langchain_core.messages import AnyMessage, HumanMessage

from reflective_agents.memory.reflection import normalised
from reflective_agents.memory.scoring import HYBRID, PUBLISHED, Ranking
from reflective_agents.memory.stream import MemoryStream, Scored
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.remembering.remember import caller, open_memory
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import recall as prompts
from reflective_agents.state.errors import OperatorOnly
from reflective_agents.state.memories import Memory
from reflective_agents.state.remembering import Recalled
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.text.stems import query_stems, stems

QUERY = 2000
"""Characters of a message that memories are looked up for."""
MOST_EVIDENCE, LONGEST_EVIDENCE = 5, 300
"""Memories, and characters of each, that a reflection or a fact is shown with."""
CANDIDATES = 30
"""Memories, at least, that those shown are chosen from: what repeats others is passed over."""
_QUESTION = re.compile(r"[^.!?\u3002\uff01\uff1f]+[?\uff1f]")


def owner_of(user: str) -> str:
    """Return the owner of a user's memory."""
    return f"user/{user}"


def user_of(context: MemoryContext) -> str:
    """Return the user whose memories these are: that of the key that came with the run, else the one in the settings.

    Raises:
        OperatorOnly: if the settings name somebody else than the key.
    """
    user = caller()
    if user and context.user not in (user, MemoryContext.model_fields["user"].default):
        raise OperatorOnly(f"the memories of {context.user!r} are not yours: leave user out, your key says who you are")
    return user or context.user


async def open_memory_of_user(step: Step[MemoryContext]) -> MemoryStream:
    """Open the memory of the user that the settings name.

    Raises:
        Misuse, UnknownModel, MissingKey: as `nodes.remembering.remember.open_memory`.
    """
    context = step.context
    return await open_memory(step, owner_of(user_of(context)), context.embeddings, max_memories=context.max_memories)


def ranking_of(context: MemoryContext) -> Ranking:
    """Return the ranking of memories that the settings ask for."""
    chosen = PUBLISHED if context.ranking == "paper" else HYBRID
    given = {name: getattr(context, name) for name in ("recency", "importance", "relevance")}
    return chosen._replace(**{name: weight for name, weight in given.items() if weight is not None})


async def retrieve(step: Step[MemoryContext], conversation: str, messages: Sequence[AnyMessage]) -> list[Recalled]:
    """Retrieve the memories that fit the last message, numbered from 1, best first.

    Everything stands once in a prompt: what was said in this thread is no memory in it, a turn from which a fact was
    drawn comes with that fact, and what rests on memories that are shown already does not repeat them.

    Args:
        step: The node that retrieves.
        conversation: The name of this thread in the memory.
        messages: The thread.

    Raises:
        LimitReached, ModelFailed: as `memory.stream.MemoryStream.retrieve`.
    """
    context, stream = step.context, await open_memory_of_user(step)
    if not context.retrieved:
        return []
    now, said = time.time(), {normalised(message.text) for message in messages}
    query, ranking = messages[-1].text[:QUERY], ranking_of(context)
    found = await stream.retrieve(
        query, k=max(CANDIDATES, 3 * context.retrieved), now=now, ranking=ranking, renew=False, apart_from=conversation
    )
    chosen = _best(_once(found, said), context.retrieved)
    await stream.renew({one.memory["id"]: now for one in chosen})
    wanted = dict.fromkeys(ground for one in chosen for ground in one.memory["evidence"][:MOST_EVIDENCE])
    grounds = {one["id"]: one for one in await stream.get(wanted) if one.get("conversation") != conversation}
    shown = said | {normalised(one.memory["text"]) for one in chosen}
    recalled = []
    for number, one in enumerate(chosen, 1):
        because = _because(one.memory, grounds, shown)
        shown |= {normalised(text) for text in because}
        recalled.append(_recalled(number, one, [_line(each) for each in because.values()]))
    return recalled


def _once(found: Sequence[Scored], said: set[str]) -> list[Scored]:
    """Drop repetitions: a fact replaces the turn it was drawn from, at the rank of whichever fits better. What another
    supersedes comes behind that."""
    facts = {
        ground: one for one in reversed(found) if one.memory["kind"] == "fact" for ground in one.memory["evidence"]
    }
    later = {gone: one for one in reversed(found) for gone in one.memory.get("supersedes", ())}
    kept: dict[str, Scored] = {}
    for one in found:
        holder = facts.get(one.memory["id"], one)
        for each in _successors(holder, later):
            text = normalised(each.memory["text"])
            if text not in said:
                kept.setdefault(text, each)
    return list(kept.values())


def _best(ranked: Sequence[Scored], most: int) -> list[Scored]:
    """Select the best. What the assistant said may be chatter, and takes a third of the places at most."""
    chosen: list[Scored] = []
    for one in ranked:
        answers = sum(not is_evidence(other.memory) for other in chosen)
        if is_evidence(one.memory) or answers < max(1, most // 3):
            chosen.append(one)
    return chosen[:most]


def _successors(one: Scored, later: Mapping[str, Scored]) -> list[Scored]:
    """Return what supersedes a memory, the latest first, and the memory itself."""
    found = [one]
    while (after := later.get(found[-1].memory["id"])) and after not in found:
        found.append(after)
    return found[::-1]


def _because(memory: Memory, grounds: Mapping[str, Memory], shown: set[str]) -> dict[str, Memory]:
    """Return what a memory rests on, by its text, without what is shown already."""
    evidence = [grounds[one] for one in memory["evidence"][:MOST_EVIDENCE] if one in grounds]
    return {one["text"]: one for one in evidence if normalised(one["text"]) not in shown}


def _line(memory: Memory) -> str:
    text = textwrap.shorten(memory["text"], LONGEST_EVIDENCE, placeholder=" ...")
    if "until" in memory:
        text = f"{text} (superseded {clock(memory['until'])})"
    return f"{memory.get('speaker', memory['kind'])}: {text}"


def _recalled(number: int, one: Scored, because: list[str]) -> Recalled:
    memory = one.memory
    return Recalled(
        number=number,
        id=memory["id"],
        kind=memory["kind"],
        text=memory["text"],
        because=because,
        speaker=memory.get("speaker", ""),
        created=memory["created"],
        since=memory.get("since", ""),
        until=memory.get("until"),
        score=one.score,
        recency=one.recency,
        importance=one.importance,
        relevance=one.relevance,
        cited=False,
    )


async def memories_message(memories: Sequence[Recalled], question: str) -> list[AnyMessage]:
    """Show memories as quoted material in front of the question; no message if there are none."""
    if not memories:
        return []
    grounds = await asyncio.to_thread(_grounds, memories, question[:QUERY])
    shown = "\n".join(map(_quoted, memories, grounds))
    return [HumanMessage(prompts.REMEMBERED.format(now=clock(time.time()), memories=shown))]


def _grounds(memories: Sequence[Recalled], question: str) -> list[list[str]]:
    """Select what is shown below each memory of what it rests on.

    A fact says in other words what its turn says. The turn is shown, too, if a third of its words are new, those
    of its questions apart, or if it alone has a word of the question asked now.
    """
    shown = set[str]().union(*stems([one["text"] for one in memories]))
    missing = query_stems(question) - shown

    def adds(line: str) -> bool:
        text = line.partition(": ")[2]  # not who said it
        whole, told = query_stems(text), query_stems(_QUESTION.sub("", text))
        return not missing.isdisjoint(whole) or 3 * len(told - shown) > len(told)

    return [list(filter(adds, one["because"])) if one["kind"] == "fact" else one["because"] for one in memories]


def _quoted(one: Recalled, grounds: Sequence[str]) -> str:
    known = {"number": f"m{one['number']}", "kind": one["kind"], "by": one.get("speaker"), "of": clock(one["created"])}
    until = one.get("until")
    known |= {"since": _attribute(one.get("since", "")), "superseded": None if until is None else clock(until)}
    text = "\n".join([one["text"], *(f"- because: {text}" for text in grounds)])
    return quoted("memory", text, **{name: value for name, value in known.items() if value})


def _attribute(text: str) -> str:
    """Strip a text of whatever could end an attribute."""
    return re.sub(r'[<>"\s]+', " ", text)[:100].strip()


def clock(seconds: float) -> str:
    """Format a time as it is shown to the model."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def is_evidence(memory: Memory) -> bool:
    """Tell whether an insight may rest on a memory: what the assistant has said is none."""
    return memory.get("speaker") != prompts.ASSISTANT
