"""What a conversational agent remembers of a user: retrieved, and shown to the model."""

import asyncio
import re
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from langchain_core.messages import AnyMessage, HumanMessage

from reflective_agents.graphs._memory.choosing import choose
from reflective_agents.graphs._memory.looking_up import QUERY, best_ranks, look_ups
from reflective_agents.graphs._memory.state import Recalled
from reflective_agents.memory import rankings
from reflective_agents.memory.reflection import normalised
from reflective_agents.models.context_window import longest_estimated
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.sources import Source
from reflective_agents.nodes.remembering.remember import open_memory, owner_of
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.users import authenticated_user
from reflective_agents.prompts import recall as prompts
from reflective_agents.state.errors import OperatorOnly
from reflective_agents.state.memories import Memory
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.text.stems import query_stems, stems

if TYPE_CHECKING:
    from reflective_agents.memory.rankings.base import Ranking
    from reflective_agents.memory.stream import MemoryStream, Scored

MOST_EVIDENCE, LONGEST_EVIDENCE = 5, 300
"""Memories, and characters of each, that a reflection or a fact is shown with."""
CANDIDATES, FACTS = 30, 200
"""Memories, at least, that those shown are chosen from: what repeats others is passed over. Facts, at most."""
FACT_TOKENS = 4000
"""Tokens of the facts that come first, unless the settings say otherwise."""
SHARE = 4
"""Facts take a quarter of a prompt at most."""
_QUESTION = re.compile(r"(?<![^.!?\u3002\uff01\uff1f])[^.!?\u3002\uff01\uff1f]++[?\uff1f]")


def user_of(context: MemoryContext) -> str:
    """Return the user whose memories these are: that of the key that came with the run, else the one in the settings.

    Raises:
        OperatorOnly: if the settings name somebody else than the key.
    """
    user = authenticated_user()
    # The default is no choice: a key's owner need not name it.
    if user and context.user not in (user, MemoryContext.model_fields["user"].default):
        raise OperatorOnly(f"the memories of {context.user!r} are not yours: leave user out, your key says who you are")
    return user or context.user


async def open_memory_of_user(step: Step[MemoryContext]) -> "MemoryStream":
    """Open the memory of the user that the settings name.

    Raises:
        Misuse, UnknownModel, MissingKey: as `nodes.remembering.remember.open_memory`.
    """
    context = step.context
    return await open_memory(step, owner_of(user_of(context)), context.embeddings, max_memories=context.max_memories)


def ranking_of(context: MemoryContext) -> "Ranking":
    """Return the ranking of memories that the settings ask for."""
    chosen = rankings.named(context.ranking) if isinstance(context.ranking, str) else context.ranking
    weights: dict[str, float] = {}
    for name in ("recency", "importance", "relevance"):
        weight = getattr(context, name)
        if weight is not None:
            weights[name] = weight
    return replace(chosen, **weights)


async def retrieve(step: Step[MemoryContext], conversation: str, messages: Sequence[AnyMessage]) -> list[Recalled]:
    """Retrieve the memories that fit the last message, numbered from 1, best first.

    The facts that still hold come first, whole while they fit. Everything stands once in a prompt: what was said in
    this thread is no memory in it, but for facts with a date; a turn from which a fact was drawn comes with that fact;
    and what rests on memories that are shown already does not repeat them.

    Args:
        step: The node that retrieves.
        conversation: The name of this thread in the memory.
        messages: The thread.

    Raises:
        LimitReached, ModelFailed: as `memory.stream.MemoryStream.retrieve`.
    """
    context = step.context
    stream = await open_memory_of_user(step)
    if not context.retrieved:
        return []
    now = time.time()
    queries = await look_ups(step, stream, messages)
    fact_tokens = _fact_tokens(step)
    rankings_of_queries = await stream.retrieve_each(
        queries,
        k=max(CANDIDATES, 3 * context.retrieved),
        now=now,
        ranking=ranking_of(context),
        renew=False,
        apart_from=conversation,
        facts=FACTS if fact_tokens else 0,
    )
    in_thread = {normalised(message.text) for message in messages}
    chosen = await asyncio.to_thread(
        choose,
        best_ranks(rankings_of_queries),
        "\n".join(queries),
        context.retrieved,
        fact_tokens,
        in_thread,
        conversation,
    )
    await stream.renew({scored.memory["id"]: now for scored in chosen})
    grounds = await _evidence_of(chosen, stream, conversation)
    shown = in_thread | {normalised(scored.memory["text"]) for scored in chosen}
    recalled = []
    for number, scored in enumerate(chosen, 1):
        because = _because(scored.memory, grounds, shown)
        shown.update(map(normalised, because))
        lines = [_line(memory) for memory in because.values()]
        recalled.append(_recalled(number, scored, lines))
    return recalled


def _fact_tokens(step: Step[MemoryContext]) -> int:
    """Return how many tokens the facts that come first may have; by default the paper has none."""
    most = step.context.fact_tokens
    if most is None:
        most = 0 if ranking_of(step.context).as_published else FACT_TOKENS
    longest = longest_estimated(model_of(step, step.context.model), step.meter)
    return most if longest is None else min(most, longest // SHARE)


async def _evidence_of(chosen: "Sequence[Scored]", stream: "MemoryStream", conversation: str) -> dict[str, Memory]:
    """Return what memories rest on, by id, without what is of this conversation."""
    ids: list[str] = []
    for scored in chosen:
        ids += scored.memory["evidence"][:MOST_EVIDENCE]
    evidence = await stream.get(dict.fromkeys(ids))
    return {memory["id"]: memory for memory in evidence if memory.get("conversation") != conversation}


def _because(memory: Memory, grounds: Mapping[str, Memory], shown: set[str]) -> dict[str, Memory]:
    """Return what a memory rests on, by its text, without what is shown already."""
    because: dict[str, Memory] = {}
    for key in memory["evidence"][:MOST_EVIDENCE]:
        ground = grounds.get(key)
        if ground and normalised(ground["text"]) not in shown:
            because[ground["text"]] = ground
    return because


def _line(memory: Memory) -> str:
    text = textwrap.shorten(memory["text"], LONGEST_EVIDENCE, placeholder=" ...")
    if "until" in memory:
        text = f"{text} (superseded {clock(memory['until'])})"
    return f"{memory.get('speaker', memory['kind'])}: {text}"


def _recalled(number: int, scored: "Scored", because: list[str]) -> Recalled:
    memory = scored.memory
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
        score=scored.score,
        recency=scored.recency,
        importance=scored.importance,
        relevance=scored.relevance,
        cited=False,
    )


async def sources_of(memories: Sequence[Recalled], question: str) -> dict[int, Source]:
    """Return memories as the sources of an answer that cites them: each as the model was shown it. What the assistant
    has said supports nothing, and has no passage."""
    grounds = await asyncio.to_thread(_grounds, memories, question[:QUERY])
    return {memory["number"]: _source(memory, lines) for memory, lines in zip(memories, grounds, strict=True)}


def _source(memory: Recalled, grounds: Sequence[str]) -> Source:
    if memory.get("speaker") == prompts.ASSISTANT:
        return Source(memory["number"], memory["id"])
    attributes = [f"{name}: {value}" for name, value in _attributes(memory).items()]
    return Source(memory["number"], memory["id"], "; ".join(attributes), (_text(memory, grounds),))


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
    texts = [memory["text"] for memory in memories]
    shown = set[str]().union(*stems(texts))
    missing = query_stems(question) - shown

    def adds(line: str) -> bool:
        text = line.partition(": ")[2]  # not who said it
        if not missing.isdisjoint(query_stems(text)):
            return True
        statements = query_stems(_QUESTION.sub("", text))
        return 3 * len(statements - shown) > len(statements)

    def selected(memory: Recalled) -> list[str]:
        if memory["kind"] != "fact":
            return memory["because"]
        return list(filter(adds, memory["because"]))

    return [selected(memory) for memory in memories]


def _quoted(memory: Recalled, grounds: Sequence[str]) -> str:
    return quoted("memory", _text(memory, grounds), number=f"m{memory['number']}", **_attributes(memory))


def _text(memory: Recalled, grounds: Sequence[str]) -> str:
    return "\n".join([memory["text"], *(f"- because: {text}" for text in grounds)])


def _attributes(memory: Recalled) -> dict[str, str]:
    until = memory.get("until")
    attributes = {
        "kind": memory["kind"],
        "by": memory.get("speaker"),
        "of": clock(memory["created"]),
        "since": _attribute(memory.get("since", "")),
        "superseded": None if until is None else clock(until),
    }
    return {name: value for name, value in attributes.items() if value}


def _attribute(text: str) -> str:
    """Strip a text of whatever could end an attribute."""
    return re.sub(r'[<>"\s]+', " ", text)[:100].strip()


def clock(seconds: float) -> str:
    """Format a time as it is shown to the model."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
