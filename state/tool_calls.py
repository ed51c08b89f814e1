"""Tool calls of a message: how many are read, what each is called, and how some of them are left out."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall, ToolMessage

from reflective_agents.state.json_types import JsonMapping, JsonObject

MAX_CALLS = 64
"""Calls of one message that are run; one more is refused, which tells the model, and the rest is dropped."""
M = TypeVar("M", bound=AIMessage)
B = TypeVar("B", bound=BaseMessage)


def with_call_ids(message: M, earlier: Iterable[BaseMessage] = ()) -> M:
    """Return the message with an id of its own for each of its tool calls.

    Some servers give no ids, or several calls the same, such as the name of the tool, within a message or from message
    to message: the results could not be told apart, and some providers refuse that. Such calls are numbered. Store
    this message rather than the model's own: a provider refuses a tool message whose id no call has.

    Args:
        message: What a model said.
        earlier: What is sent to models before it, whose ids are taken.
    """
    if len(message.tool_calls) > MAX_CALLS + 1:
        message = only_calls(message, message.tool_calls[: MAX_CALLS + 1])
    before, usable = every_call(message), len(message.tool_calls)
    taken = {call["id"] for each in earlier if isinstance(each, AIMessage) for call in every_call(each)}
    named = _with_own_ids(before, taken)
    renamed = {call["id"] for call, new in zip(before, named, strict=True) if call["id"] != new["id"]}
    # The providers' clients send the calls themselves, too.
    content = _without_blocks(message, renamed - {None})
    update = {"tool_calls": named[:usable], "invalid_tool_calls": named[usable:], "content": content}
    return message.model_copy(update=update)


def every_call(message: AIMessage) -> list[ToolCall | InvalidToolCall]:
    """Return the calls of a message, also those that cannot be read: they are sent to models as the others are."""
    return [*message.tool_calls, *message.invalid_tool_calls]


def _with_own_ids(calls: Sequence[ToolCall | InvalidToolCall], taken: set[str | None]) -> list[JsonObject]:
    named: list[JsonObject] = []
    numbers = defaultdict[str | None, Iterator[int]](lambda: count(2))
    for call in calls:
        name = call["id"] or "call_1"
        while name in taken:
            name = f"{call['id'] or 'call'}_{next(numbers[call['id']])}"
        taken.add(name)
        named.append({**call, "id": name})
    return named


def with_callers(messages: Iterable[B]) -> Iterator[tuple[AIMessage | None, B]]:
    """Yield each message, the result of a tool with the message that has called it: the last of a model before it. The
    ids do not tell, for some servers begin anew with each message."""
    caller: AIMessage | None = None
    for message in messages:
        if isinstance(message, AIMessage):
            caller = message
        yield (caller if isinstance(message, ToolMessage) else None), message


def only_calls(message: M, calls: Sequence[ToolCall]) -> M:
    """Return the message with these of its tool calls alone, in its content, too: Anthropic's messages and OpenAI's
    responses repeat each call as a block, and are refused with one that nothing answers."""
    kept = {call["id"] for call in calls}
    called = {call["id"] for call in message.tool_calls if call["id"]}
    return message.model_copy(update={"tool_calls": list(calls), "content": _without_blocks(message, called - kept)})


def _without_blocks(message: AIMessage, calls: Collection[object]) -> str | list[str | JsonObject]:
    """Return the content of a message without the blocks that repeat calls with these ids."""
    content = message.content
    if isinstance(content, str):
        return content
    return [block for block in content if not (isinstance(block, dict) and _ids_of(block).intersection(calls))]


def _ids_of(block: JsonMapping) -> set[object]:
    return {block.get("id"), block.get("call_id")}
