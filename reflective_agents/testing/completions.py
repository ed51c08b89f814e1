"""The JSON of OpenAI's chat completions: a request's body becomes a scripted request, candidates become a reply."""

import json
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call

from reflective_agents.state.json_types import JsonObject
from reflective_agents.testing.script import Call, Choice, Request, usage
from reflective_agents.testing.wire import Piece, build_request, pieces

Json: TypeAlias = JsonObject


def parse_request(body: Json) -> Request:
    """Parse the body of a chat completion into what a scripted model sees."""
    names = ("tools", "tool_choice", "response_format", "stop", "n", "seed")
    parameters = {name: body[name] for name in names if body.get(name) is not None}
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    return build_request([_message(message) for message in body.get("messages", [])], max_tokens=most, **parameters)


def completion(body: Json, request: Request, choices: Sequence[Choice]) -> Json:
    """Build the whole reply; with log-probabilities if the body asks for them and the choices have any."""
    listed: list[Json] = []
    for index, choice in enumerate(choices):
        logprobs = choice.logprobs if body.get("logprobs") else None
        about = {"index": index, "message": _reply(choice), "finish_reason": choice.finish_reason}
        listed.append({**about, "logprobs": logprobs})
    return _envelope(body, request, "chat.completion") | {"choices": listed, "usage": usage_of(request, choices)}


def chunks(body: Json, request: Request, choices: Sequence[Choice]) -> Iterator[Json]:
    """Yield the chunks of the streamed reply, in order; the last has the usage, if the body asks for it."""
    envelope = _envelope(body, request, "chat.completion.chunk")
    for index, _ in enumerate(choices):
        yield envelope | {"choices": [_change(index, {"role": "assistant", "content": ""})]}
    for piece in pieces(choices):
        yield envelope | {"choices": [_change(piece.candidate, _delta(piece))]}
    for index, choice in enumerate(choices):
        yield envelope | {"choices": [_change(index, {}, choice.finish_reason)]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield envelope | {"choices": [], "usage": usage_of(request, choices)}


def usage_of(request: Request, choices: Sequence[Choice]) -> dict[str, int]:
    """Return the usage of a whole call in OpenAI's terms."""
    prompt, completion = usage(request, choices)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _message(data: Json) -> BaseMessage:
    """Convert a message to LangChain's form; tool calls whose arguments are not JSON become invalid ones."""
    calls = data.get("tool_calls") or []
    if not calls:
        return convert_to_messages([{**data, "content": data.get("content") or ""}])[0]
    message = AIMessage(data.get("content") or "")
    for call in calls:
        try:
            message.tool_calls.append(parse_tool_call(call))  # type: ignore[arg-type]
        except OutputParserException as error:
            message.invalid_tool_calls.append(make_invalid_tool_call(call, str(error)))
    return message


def _envelope(body: Json, request: Request, kind: str) -> Json:
    return {"id": f"chatcmpl-{request.key[:24]}", "object": kind, "created": 0, "model": body.get("model")}


def _reply(choice: Choice) -> Json:
    message: Json = {"role": "assistant", "content": choice.content, "refusal": None}
    if choice.calls:
        message["tool_calls"] = [_call(call) for call in choice.calls]
    return message


def _call(call: Call) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _change(index: int, delta: Json, finish_reason: str | None = None) -> Json:
    return {"index": index, "delta": delta, "finish_reason": finish_reason}


def _delta(piece: Piece) -> Json:
    if piece.call is None:
        return {"content": piece.content}
    part = _call(piece.call) if piece.call.id else {"function": {"arguments": piece.call.arguments}}
    return {"tool_calls": [{"index": piece.position, **part}]}


def event(chunk: Json) -> str:
    """Format a chunk as a server-sent event."""
    return f"data: {json.dumps(chunk)}\n\n"
