"""How much of a reply is read: a server may send more than it was asked for, or was ever meant to.

What is beyond is left out before anything reads it, since every reader takes time in proportion, on the event loop.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCallChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call_chunk

from reflective_agents.models.thoughts import beside, thought_in
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.tool_calls import MAX_CALLS, only_calls

LONGEST_TOKEN = 20
"""Most characters for each token that a reply may have."""
SHORTEST_PIECE = 6
"""Characters that a piece of a stream counts at least: reading it takes time, also if it is empty. Most servers send a
token in each."""
LONGEST_THOUGHT = 200_000
"""Most characters of a thought that stands in tags before an answer, of which it takes nothing away."""
LONGEST_ARGUMENTS = 1_000_000
"""Most characters of the arguments of a reply's calls, all together."""
_SHOWN = 1_000
"""Most characters that are kept of arguments that are not JSON."""
M = TypeVar("M", bound=AIMessage)


class Remaining:
    """What is left of a reply that comes in pieces. What it thinks, and pieces without a text, take nothing from that
    of its text.

    Args:
        tokens: Most tokens that it may have.
    """

    def __init__(self, tokens: int) -> None:
        self._text = self._thought = self._textless = tokens * LONGEST_TOKEN

    @property
    def is_used(self) -> bool:
        """Whether nothing more is read."""
        return self._text <= 0 or self._textless <= 0

    def take(self, piece: M) -> M:
        """Return as much of the next piece as may still be read."""
        piece = shortened(piece, self._text, self._thought)
        text, thought = _lengths(piece)
        self._thought = max(self._thought - thought, 0)  # beside the answer and in it, both may use what is left
        if text:
            self._text -= max(text, SHORTEST_PIECE)
        else:
            self._textless -= SHORTEST_PIECE
        return piece


def shortened(reply: M, most: int, most_thought: int | None = None) -> M:
    """Return a reply of which no more is kept than may be read.

    Args:
        reply: A whole reply, or a piece of one.
        most: Most characters of its text.
        most_thought: Most characters of what it thought; None for as many as of its text.
    """
    most_thought = most if most_thought is None else most_thought
    changed: JsonObject = {}
    text, thought = _lengths(reply)
    if text > most or thought > most_thought:
        changed["content"] = _content_within(reply.content, most, most_thought)
        fields = {name: text[:most_thought] for name, text in beside(reply)}
        changed["additional_kwargs"] = {**reply.additional_kwargs, **fields}
    if len(reply.invalid_tool_calls) > MAX_CALLS + 1:
        changed["invalid_tool_calls"] = reply.invalid_tool_calls[: MAX_CALLS + 1]
    if changed:
        reply = reply.model_copy(update=changed)
    if len(reply.tool_calls) > MAX_CALLS + 1:
        reply = only_calls(reply, reply.tool_calls[: MAX_CALLS + 1])
    return reply


def _lengths(reply: AIMessage) -> tuple[int, int]:
    """Return how many characters a reply has, of text and of thought."""
    apart = sum(len(text) for _, text in beside(reply))
    if isinstance(reply.content, str):
        return len(reply.content), apart
    text = sum(len(_text_of(block)) for block in reply.content)
    thought = sum(len(thought_in(block)) for block in reply.content)
    return text, apart + thought


def _text_of(block: str | Mapping[str, Any]) -> str:
    text = block if isinstance(block, str) else block.get("text")
    return text if isinstance(text, str) else ""


def _content_within(
    content: str | Sequence[str | JsonObject], most: int, most_thought: int
) -> str | list[str | JsonObject]:
    """Return a content up to its most. Of the block of text that goes beyond the beginning is kept, and of such a
    thought, too; nothing of its kind follows."""
    if isinstance(content, str):
        return content[:most]
    kept: list[str | JsonObject] = []
    for block in content:
        text, thought = _text_of(block), thought_in(block)
        if len(text) > most:
            if most:
                kept.append({"type": "text", "text": text[:most]})
        elif len(thought) > most_thought:
            if most_thought:
                kept.append({"type": "thinking", "thinking": thought[:most_thought]})
        else:
            kept.append(block)
        most, most_thought = max(most - len(text), 0), max(most_thought - len(thought), 0)
    return kept


class CallPieces:
    """Tool calls that come in pieces: joined here, since LangChain reads a call anew with each, and completes arguments
    that are no JSON in quadratic time."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._length = 0

    def take(self, index: int | str | None, id: str | None, name: object, arguments: object) -> None:
        """Take the next piece, in the order in which they come; what is beyond what may be read is dropped. Some
        servers send an object for the text of the arguments."""
        text = str(arguments or "")
        self._length += max(len(text), 1)
        call = self._call_of(index, id)
        if call is None or self._length > LONGEST_ARGUMENTS:
            return
        call.id = call.id or id
        call.name.append(str(name or ""))
        call.arguments.append(text)

    def _call_of(self, index: int | str | None, id: str | None) -> "_Call | None":
        """Return the call that a piece belongs to: of its index the last, and of its id if both have one."""
        for call in reversed(self._calls):
            if call.index == index and (not call.id or not id or call.id == id):
                return call
        if len(self._calls) > MAX_CALLS:
            return None
        self._calls.append(_Call(index, id))
        return self._calls[-1]

    def whole(self) -> list[InvalidToolCall]:
        """Return the calls as they were written."""
        calls: list[InvalidToolCall] = []
        for call in self._calls:
            name = "".join(call.name)
            arguments = "".join(call.arguments)
            calls.append(invalid_tool_call(name=name, args=arguments, id=call.id))
        return calls

    def joined(self) -> list[ToolCallChunk]:
        """Return the calls as the last piece of a stream has them."""
        chunks: list[ToolCallChunk] = []
        for number, call in enumerate(self.whole()):
            arguments = _readable(call["args"] or "")
            chunks.append(tool_call_chunk(name=call["name"] or None, args=arguments, id=call["id"], index=number))
        return chunks


class _Call:
    def __init__(self, index: int | str | None, id: str | None) -> None:
        self.index, self.id = index, id
        self.name: list[str] = []
        self.arguments: list[str] = []


def _readable(arguments: str) -> str:
    """Return arguments that are whole; else a beginning of them as JSON's text. LangChain completes what is no JSON,
    which would let a call run with the half that came, and takes the square of its length for that."""
    return json.dumps(arguments[:_SHOWN]) if read_arguments(arguments) is None else arguments


def as_written(arguments: str) -> str:
    """Return unreadable arguments that came as JSON's text as the model wrote them."""
    try:
        text = json.loads(arguments) if arguments.startswith('"') else arguments
    except ValueError:
        return arguments
    return text if isinstance(text, str) else arguments


def read_arguments(text: str) -> JsonObject | None:
    """Read the arguments of a call; empty where it has none or null, None where they are no JSON object or not a whole
    one."""
    try:
        arguments = json.loads(text or "{}", strict=False)
    except (ValueError, RecursionError):
        return None
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else None
