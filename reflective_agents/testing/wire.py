"""The shape of chat completions: what a request holds, what may not be sent, and the pieces of a streamed reply."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from reflective_agents.state.json_types import JsonMapping
from reflective_agents.testing.script import Call, Choice, Request


@dataclass(frozen=True)
class Piece:
    """What one streamed chunk adds to a candidate: text, or a part of the tool call at `position`."""

    candidate: int
    content: str = ""
    call: Call | None = None
    position: int = 0


def build_request(
    messages: Sequence[BaseMessage],
    *,
    tools: Sequence[JsonMapping] = (),
    tool_choice: str | bool | JsonMapping | None = None,
    response_format: JsonMapping | None = None,
    stop: str | Sequence[str] | None = None,
    n: int = 1,
    seed: int | None = None,
    max_tokens: int | None = None,
) -> Request:
    """Build a request from the parameters of a chat completion.

    Args:
        messages: the conversation.
        tools: tools as OpenAI describes them.
        tool_choice: None, True, "auto", "none", "any", "required", a tool's name or OpenAI's dict that names one.
        response_format: OpenAI's `json_schema` or `json_object` format.
        stop: texts before which the answer ends.
        n: how many candidates.
        seed: taken over as it is.
        max_tokens: most tokens of a candidate.
    """
    functions = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in tools}
    choice = _tool_choice(tool_choice)
    forced = choice if choice in functions else None
    if choice == "required" and len(functions) == 1:
        forced = next(iter(functions))
    form = (response_format or {}).get("json_schema", {})
    schemas = functions | {form["name"]: form.get("schema", {})} if form else functions
    return Request(
        messages=tuple(messages),
        tools=tuple(functions),
        tool_choice=choice,
        schema=form.get("name") or forced,
        as_json=bool(response_format) and (response_format or {}).get("type") != "text",
        stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
        schemas=schemas,
        n=n,
        seed=seed,
        max_tokens=max_tokens,
    )


def find_fault(messages: Sequence[BaseMessage]) -> str | None:
    """Return why a provider refuses these messages: there are none, or tool calls and tool messages do not match."""
    if not messages:
        return "Invalid 'messages': empty array."
    pending: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in pending:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            pending.remove(message.tool_call_id)
        elif pending:
            break
        elif isinstance(message, AIMessage):
            pending = {str(call["id"]) for call in [*message.tool_calls, *message.invalid_tool_calls]}
    if pending:
        return f"an assistant message's tool_calls must be answered by tool messages; unanswered: {sorted(pending)}"
    return None


def pieces(choices: Sequence[Choice]) -> Iterator[Piece]:
    """Yield the candidates word by word, one word of each in turn, as a provider streams them."""
    candidates = [_pieces(choice, number) for number, choice in enumerate(choices)]
    for turn in zip_longest(*candidates):
        yield from (piece for piece in turn if piece)


def _pieces(choice: Choice, candidate: int) -> Iterator[Piece]:
    for word in _words(choice.content or ""):
        yield Piece(candidate, word)
    for position, call in enumerate(choice.calls):
        yield Piece(candidate, call=Call("", call.id, call.name), position=position)
        for word in _words(call.arguments):
            yield Piece(candidate, call=Call(word), position=position)


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _tool_choice(choice: str | bool | JsonMapping | None) -> str | None:
    if isinstance(choice, Mapping):
        return str(choice["function"]["name"])
    if choice is True or choice == "any":
        return "required"
    return str(choice) if choice else None
