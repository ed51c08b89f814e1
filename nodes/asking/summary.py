"""The oldest turns of a conversation, summarised by a model: once, and then extended by what comes later."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage

from reflective_agents.models.calls import request
from reflective_agents.models.context_window import HIGH, longest_estimated
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.models.meter import Meter
from reflective_agents.models.prices import rates_of
from reflective_agents.models.providers import describe_model, model_for
from reflective_agents.nodes.asking.compaction import ends_turn, first_kept, first_of_last_turns, with_summary
from reflective_agents.nodes.asking.kept import beginnings, find_summary, keep_summary
from reflective_agents.nodes.asking.thread import AFTER_QUESTION, position_of_question
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.sources import thread_sources
from reflective_agents.prompts import compaction as prompts
from reflective_agents.state.context import Context
from reflective_agents.state.errors import ModelFailed, TooLong
from reflective_agents.state.run import Compaction, RunState
from reflective_agents.text.digest import digest
from reflective_agents.text.joined import joined

LAST_TURNS = 0.6
"""Share of what a compacted conversation may have for its last turns, which stay as they are; the summary has the
rest."""
SMALLEST_SUMMARY = 200
"""Estimated tokens that a summary may always have."""
LONGEST_SUMMARY = 3
"""Bytes of a summary for each estimated token that it is to have: half more than the words asked for have in English,
since words are longer elsewhere, and what is cut from its midst is lost."""
_UNKNOWN = 30_000
"""Estimated tokens of turns that are summarised at once where nobody knows what the model holds."""
_FILLED = 0.75
"""Share of what one call may be shown that turns fill, since they have different lengths."""
_TAGS = 16
"""Estimated tokens of the tags of a turn."""
_SHORTEST = 40
"""Estimated tokens to which turns are shortened at least; the oldest are extracted, where these are still too many."""
_WORD = 3
"""Estimated tokens of a word."""


async def compact(
    state: RunState,
    context: Context,
    meter: Meter,
    most: int,
    user: str | None = None,
    keep: Callable[[Compaction], None] = lambda _: None,
) -> Compaction | None:
    """Summarise the oldest turns of the conversation, as many as needed; or take the summary that was made of them in
    another run.

    Args:
        state: The state of the run as a node sees it, but for what is compacted.
        context: The settings of the run.
        meter: Its limits.
        most: Estimated tokens that the conversation may have then, without the question.
        user: The user whom a server has authenticated.
        keep: Is given what is compacted by then after each call, so that no call is made twice.

    Returns:
        What is compacted now; None if nothing could be made shorter.

    Raises:
        LimitReached: if a limit of the run is met. A model that fails is replaced by an extract.
    """
    before = state.get("compaction")
    messages = state["messages"]
    conversation = [_with_question(message, messages) for message in messages[: position_of_question(messages)]]
    begins = first_kept(messages, before)
    keys = await asyncio.to_thread(beginnings, conversation, context, user)
    compaction = None if begins else find_summary(keys, conversation)
    if compaction:
        keep(compaction)
        await _tell(meter, state, conversation, compaction)
        return compaction
    length = max(most - int(LAST_TURNS * most), SMALLEST_SUMMARY)
    ends = begins + first_of_last_turns(conversation[begins:], int(LAST_TURNS * most))
    earlier = before["summary"] if before and begins else ""
    if ends == begins and len(earlier.encode()) <= LONGEST_SUMMARY * length:
        return None
    writer = Writer(context, meter, length)
    made: list[Compaction] = []
    async for part in writer.extend(earlier, conversation[begins:ends]):
        longer = await asyncio.to_thread(_compaction, conversation[: begins + part.messages], part.text)
        keep_summary(keys, longer, *made[-1:])
        keep(longer)
        made.append(longer)
    await _tell(meter, state, conversation, made[-1], begins, writer)
    return made[-1]


def _with_question(message: AnyMessage, messages: Sequence[AnyMessage]) -> AnyMessage:
    """Return a message of a conversation; work that was done for its question has that before it. A later turn finds
    the question there, and so covered by the summary."""
    if not message.additional_kwargs.get(AFTER_QUESTION):
        return message
    question = words_of(messages[position_of_question(messages) or 0])
    return message.model_copy(update={"content": f"{question}\n{message.text}"})


def _compaction(covered: Sequence[AnyMessage], summary: str) -> Compaction:
    sources = {str(number): [source.url, source.title] for number, source in thread_sources(covered).items()}
    return Compaction(until=str(covered[-1].id), messages=len(covered), summary=summary, sources=sources)


async def _tell(
    meter: Meter,
    state: RunState,
    conversation: Sequence[AnyMessage],
    compaction: Compaction,
    begins: int = 0,
    writer: "Writer | None" = None,
) -> None:
    """Tell what is compacted; nobody has written a summary that was there already."""
    after = state.copy()
    after["compaction"] = compaction
    whole = await asyncio.to_thread(_count, conversation)
    shown = await asyncio.to_thread(_count, with_summary(after)["messages"][:-1])
    written = {"calls": writer.calls, "model": writer.name} if writer else {"calls": 0}
    meter.tell(
        "compacted", messages=compaction["messages"] - begins, covered=compaction["messages"], tokens_before=whole,
        tokens_after=shown, **written, summary=compaction["summary"],
    )  # fmt: skip


def _count(messages: Sequence[BaseMessage]) -> int:
    return estimate_tokens(messages, {})


class Written(NamedTuple):
    """A summary of so many messages, with an earlier one."""

    text: str
    messages: int


class Writer:
    """The model that summarises, within its share of what is left to the run.

    Args:
        context: The settings of the run.
        meter: Its limits.
        length: Most estimated tokens of a summary.
    """

    def __init__(self, context: Context, meter: Meter, length: int) -> None:
        self._chat = model_for(context, context.summariser)
        self._meter = meter
        self._length = length
        self._share = context.compact_share
        self._answer = context.max_answer_tokens
        self.name = describe_model(self._chat)["model_name"]
        self.calls = 0

    async def extend(self, summary: str, messages: Sequence[AnyMessage]) -> AsyncIterator[Written]:
        """Yield a summary that holds what messages add to an earlier one, which may be empty: after each call that has
        read a turn to its end. The last one holds them all. Of more turns than the calls hold, the oldest are
        extracted."""
        part = self._part()
        calls = self._affordable(part)
        spoken = sum(message.type != "system" for message in messages)
        most = max(calls * int(_FILLED * part) - _TAGS * spoken, _SHORTEST * spoken)
        groups = await asyncio.to_thread(_groups, messages, most, part)
        early: list[str] = []
        for group in groups[:-calls]:
            early += group.turns
        if early:
            summary = await asyncio.to_thread(self._extract, summary, early)
        covered = 0
        for group in groups[-calls:]:
            summary = await self._extend(summary, group.turns)
            if group.covers > covered or group is groups[-1]:
                covered = group.covers
                yield Written(summary, covered)

    def _part(self) -> int:
        """Return how many estimated tokens of turns are summarised by one call."""
        longest = longest_estimated(self._chat, self._meter)
        if longest is None:
            return _UNKNOWN
        fixed = estimate_tokens(prompts.SUMMARISE.format_messages(summary="", turns="", words=0), {})
        return max(int(HIGH * longest) - fixed - 2 * self._length, self._length)

    def _affordable(self, part: int) -> int:
        """Return how many calls the share of the run holds; at least one is tried."""
        meter = self._meter
        prompt = part + 2 * self._length
        calls = min(meter.calls_left, meter.tokens_left / (prompt + self._answer))
        rates = rates_of(self._chat, meter.prices, prompt)
        cost = rates.cost(prompt, self._answer) if rates else 0
        if cost and meter.nano_left is not None:
            calls = min(calls, meter.nano_left / cost)
        return max(int(self._share * calls), 1)

    async def _extend(self, summary: str, turns: Sequence[str]) -> str:
        """Summarise in one call; in two, if its prompt is too long after all."""
        try:
            return await self._write(summary, turns)
        except TooLong:
            half = len(turns) // 2
            if not half:
                return await asyncio.to_thread(self._extract, summary, turns)
            return await self._extend(await self._extend(summary, turns[:half]), turns[half:])
        except ModelFailed:
            return await asyncio.to_thread(self._extract, summary, turns)

    async def _write(self, summary: str, turns: Sequence[str]) -> str:
        earlier = quoted("summary", summary) + "\n" if summary else ""
        prompt = prompts.SUMMARISE.format_messages(summary=earlier, turns="\n".join(turns), words=self._length // _WORD)
        self.calls += 1
        reply, *_ = await request(self._chat, prompt, self._meter)
        text = shorten(reply.text.strip(), LONGEST_SUMMARY * self._length)
        return text or await asyncio.to_thread(self._extract, summary, turns)

    def _extract(self, summary: str, turns: Sequence[str]) -> str:
        """Take the sentences that say most, where no model summarises."""
        return shorten(digest([summary, *turns], self._length // _WORD), 2 * self._length)


class _Group(NamedTuple):
    """What one call reads, and how many of the messages are read to the end of a turn then."""

    turns: list[str]
    covers: int


def _groups(messages: Sequence[AnyMessage], most: int, part: int) -> list[_Group]:
    """Return messages as quoted text, shortened to so many estimated tokens, in groups for one call each. It is called
    in a thread: thousands of them take more than a second."""
    spoken = [index for index, message in enumerate(messages) if message.type != "system"]
    texts = shortened([_text(messages[index]) for index in spoken], most)
    read: list[tuple[int, str]] = []
    for index, text in zip(spoken, texts, strict=True):
        cut = pieces(text, part - _TAGS) if text else ()
        read += [(index, quoted("turn", piece, by=messages[index].type)) for piece in cut]
    read = read or [(0, "")]
    groups: list[_Group] = []
    count, covers = 0, 0
    for group in grouped([piece for _, piece in read], part):
        count += len(group)
        following = read[count][0] if count < len(read) else len(messages)
        for index in range(following, covers, -1):
            if ends_turn(messages, index):
                covers = index
                break
        groups.append(_Group(group, covers))
    return groups


def _text(message: AnyMessage) -> str:
    """Return what a message says, with the calls of tools, and without the list of its references: that is kept."""
    if not isinstance(message, AIMessage):
        return message.text.strip()
    text, _ = split_references(message.text)
    parts = [text.strip()]
    for call in message.tool_calls:
        args = json.dumps(call["args"], ensure_ascii=False)
        parts.append(f"{call['name']}({args})")
    return joined(parts)


def shortened(texts: Sequence[str], most: int) -> list[str]:
    """Shorten the longest of several texts, all to the same length, so that together they have at most so many
    estimated tokens."""
    left = longest = 2 * most
    lengths = sorted(len(text.encode()) for text in texts)
    for index, length in enumerate(lengths):
        longest = left // (len(lengths) - index)
        if length > longest:
            break
        left -= length
    else:
        return list(texts)
    return [shorten(text, longest) for text in texts]


def shorten(text: str, size: int) -> str:
    """Shorten a text to so many bytes: its beginning, and half as much of its end."""
    data = text.encode()
    if len(data) <= size:
        return text
    kept = size // 3
    beginning = data[: size - kept].decode(errors="ignore")
    end = data[len(data) - kept :].decode(errors="ignore")
    return f"{beginning} ... {end}"


def pieces(text: str, most: int) -> Iterator[str]:
    """Cut a text into pieces of so many estimated tokens at most."""
    if len(text.encode()) <= 2 * most:
        yield text
        return
    size = max(most // 2, 1)  # characters: one has up to four bytes
    for start in range(0, len(text), size):
        yield text[start : start + size]


def grouped(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """Put texts into groups, in order, of so many estimated tokens each, or of one text that has more."""
    group: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode()) // 2 + 1
        if group and size + length > most:
            yield group
            group, size = [], 0
        group.append(text)
        size += length
    yield group
