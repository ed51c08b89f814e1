"""What a conversational agent does with its memory of a user: perceive, retrieve, cite, keep."""

import asyncio
import re
import textwrap
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from reflective_agents.memory.reflection import same
from reflective_agents.memory.scoring import HYBRID, PUBLISHED, Ranking
from reflective_agents.memory.stream import MemoryStream, Scored
from reflective_agents.nodes.caller import caller
from reflective_agents.nodes.chat import ask
from reflective_agents.nodes.remember import memories_text, open_memory
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.transcript import quoted
from reflective_agents.prompts import memory as memory_prompts
from reflective_agents.prompts import recall as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed, OperatorOnly
from reflective_agents.state.memories import LEAST, Fact, Facts, Kind, Memory, new_memory
from reflective_agents.state.remembering import MemoryState, Recalled
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.text.stems import query_stems, stems

LONGEST = 1000
"""Characters of one memory; what is said at greater length becomes several."""
MOST_PARTS = 20
"""Memories that one message may become; the rest is left to the thread."""
QUERY = 2000
"""Characters of a message that memories are looked up for."""
UNRATED = 5
"""Importance of what could not be rated."""
MOST_EVIDENCE, LONGEST_EVIDENCE = 5, 300
"""Memories, and characters of each, that a reflection or a fact is shown with."""
CANDIDATES = 30
"""Memories, at least, that those shown are chosen from: what repeats others is passed over."""
KNOWN = 20
"""Latest facts that are shown beside those retrieved when new ones are written down."""
_FACTS: tuple[Kind, ...] = ("fact",)

_QUESTION = re.compile(r"[^.!?\u3002\uff01\uff1f]+[?\uff1f]")

LONGEST_CITATION = 200
"""Characters between the brackets of a citation."""
_CITATION = re.compile(r"\s?\[\s*m(\d+(?:\s*[,;]\s*m?\d+)*)\s*\]", re.IGNORECASE)


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
        Misuse, UnknownModel, MissingKey: as `nodes.remember.open_memory`.
    """
    context = step.context
    return await open_memory(step, owner_of(user_of(context)), context.embeddings, max_memories=context.max_memories)


def ranking_of(context: MemoryContext) -> Ranking:
    """Return the ranking of memories that the settings ask for."""
    chosen = PUBLISHED if context.ranking == "paper" else HYBRID
    given = {name: getattr(context, name) for name in ("recency", "importance", "relevance")}
    return chosen._replace(**{name: weight for name, weight in given.items() if weight is not None})


def parts(text: str) -> list[str]:
    """Split a message into texts of memories: one, or several where it is long."""
    said = text.strip()[: 2 * MOST_PARTS * LONGEST]
    return textwrap.wrap(said, LONGEST, replace_whitespace=False, break_on_hyphens=False)[:MOST_PARTS]


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
    now, said = time.time(), {same(message.text) for message in messages}
    query, ranking = messages[-1].text[:QUERY], ranking_of(context)
    found = await stream.retrieve(
        query, k=max(CANDIDATES, 3 * context.retrieved), now=now, ranking=ranking, renew=False, apart_from=conversation
    )
    chosen = _best(_once(found, said), context.retrieved)
    await stream.renew({one.memory["id"]: now for one in chosen})
    wanted = dict.fromkeys(ground for one in chosen for ground in one.memory["evidence"][:MOST_EVIDENCE])
    grounds = {one["id"]: one for one in await stream.get(wanted) if one.get("conversation") != conversation}
    shown = said | {same(one.memory["text"]) for one in chosen}
    recalled = []
    for number, one in enumerate(chosen, 1):
        because = _because(one.memory, grounds, shown)
        shown |= {same(text) for text in because}
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
            text = same(each.memory["text"])
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
    return {one["text"]: one for one in evidence if same(one["text"]) not in shown}


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


def cited(text: str) -> set[int]:
    """Return the numbers of the memories that a text cites."""
    return {int(number) for match in _CITATION.finditer(text) for number in re.findall(r"\d+", match[1])}


def uncited(text: str) -> str:
    """Remove citations of memories from a text: they mean something only beside the memories of their turn."""
    return _CITATION.sub("", text)


def only_cited(text: str, count: int) -> str:
    """Keep only the citations of memories 1 to `count`, and remove whatever else looks like a citation."""

    def checked(match: re.Match[str]) -> str:
        numbers = re.findall(r"\d+", match[1])
        kept = [number for number in numbers if 1 <= int(number) <= count]
        lead = match[0][: match[0].index("[")]
        if kept == numbers:
            return match[0]
        return f"{lead}[{', '.join(f'm{number}' for number in kept)}]" if kept else ""

    return _CITATION.sub(checked, text)


class Citing:
    """Reads an answer while it comes, and leaves out what it cannot cite. `count` is how many memories it was shown."""

    def __init__(self, count: int) -> None:
        self._count, self._held = count, ""

    def feed(self, text: str) -> str:
        """Return what stands before a citation that has not ended yet."""
        self._held += text
        begun = self._held.rfind("[", -LONGEST_CITATION)
        end = len(self._held) if begun < 0 or "]" in self._held[begun:] else begun
        ready = self._held[:end].rstrip()
        self._held = self._held[len(ready) :]
        return only_cited(ready, self._count)


def without_citations(conversation: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Remove the citations of memories from the earlier answers of a conversation."""
    return [
        message.model_copy(update={"content": uncited(message.content)})
        if isinstance(message, AIMessage) and isinstance(message.content, str)
        else message
        for message in conversation
    ]


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


def is_evidence(memory: Memory) -> bool:
    """Tell whether an insight may rest on a memory: what the assistant has said is none."""
    return memory.get("speaker") != prompts.ASSISTANT


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
    texts = {same(one["text"]) for one in known}
    by_words = {same(one.statement): one for one in facts}
    return [one for words, one in by_words.items() if words and words not in texts]
