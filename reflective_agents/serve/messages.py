"""Anthropic's messages over the strategies."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from langchain_core.messages import convert_to_messages
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from reflective_agents.models.costs import estimate_tokens
from reflective_agents.serve.answering import Answering, Progress, Reply, read_json, respond, with_refusals
from reflective_agents.serve.chat_request import schema_of
from reflective_agents.serve.messages_request import parse
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import ServerApi
from reflective_agents.serve.streaming import event, progress_line
from reflective_agents.state.json_types import JsonObject

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


async def create_message(request: Request) -> Response:
    """Answer a conversation with a strategy."""
    body = parse(await read_json(request))
    run = Answering(ServerApi(request), body.chat())
    await run.start()
    return await respond(request, run, MessageForm(body.model, thinks=body.thinking.type != "disabled"))


async def count_tokens(request: Request) -> Response:
    """Estimate the tokens of a conversation and its tools, as runs reserve them: rather too many than too few."""
    # How long an answer may be does not count.
    chat = parse({**await read_json(request), "max_tokens": 1}).chat()
    schema_of(chat.strategy)
    messages = convert_to_messages(chat.question())
    return JSONResponse({"input_tokens": estimate_tokens(messages, {"tools": chat.tools})})


class MessageForm:
    """A message on its way to the client: a `Form`.

    Args:
        model: The model as the client named it.
        thinks: Whether the client reads what the run does, as its thinking.
    """

    last = ""

    def __init__(self, model: str, *, thinks: bool = False) -> None:
        self._thinks = thinks
        self._block: JsonObject | None = None
        self._message: JsonObject = {
            "id": f"msg_{uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage({}),
        }

    def begin(self) -> Iterator[JsonObject]:
        """Begin the message."""
        yield {"type": "message_start", "message": self.whole()}

    def progress(self, progress: Progress) -> Iterator[JsonObject]:
        """Add an event of the run to the thinking, until the answer has begun."""
        if self._thinks and (self._block is None or self._block["type"] == "thinking"):
            if self._block is None:
                yield self._open({"type": "thinking", "thinking": "", "signature": ""})
            yield self._delta("thinking", progress_line(progress))

    def text(self, text: str) -> Iterator[JsonObject]:
        """Add a piece of the answer."""
        if self._block is None or self._block["type"] != "text":
            yield from self._close()
            yield self._open({"type": "text", "text": ""})
        yield self._delta("text", text)

    def end(self, reply: Reply) -> Iterator[JsonObject]:
        """End with the calls of the client's tools, or with the answer."""
        if reply.answer == "":
            yield from self.text("")
        yield from self._close()
        for call in reply.calls:
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            yield self._open({"type": "tool_use", "id": call["id"], "name": name, "input": {}})
            yield self._at(
                {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": arguments}}
            )
            self._message["content"][-1]["input"] = json.loads(arguments)
            yield from self._close()
        reason = "tool_use" if reply.calls else "max_tokens" if reply.at_limit else "end_turn"
        self._message |= {"stop_reason": reason, "usage": _usage(reply.usage)}
        ended = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": self._message["usage"]}
        yield {"type": "message_stop"}

    def fail(self, refusal: Refused) -> Iterator[JsonObject]:
        """End with an error."""
        yield _error(refusal)

    def whole(self) -> JsonObject:
        """Return the message as it is now."""
        return {**self._message, "content": [{**block} for block in self._message["content"]]}

    def encode(self, data: JsonObject) -> str:
        """Return an event as it is sent."""
        return f"event: {data['type']}\n{event(data)}"

    def _open(self, block: JsonObject) -> JsonObject:
        self._block = block
        self._message["content"].append(block)
        return self._at({"type": "content_block_start", "content_block": {**block}})

    def _delta(self, kind: str, text: str) -> JsonObject:
        assert self._block is not None
        self._block[kind] += text
        return self._at({"type": "content_block_delta", "delta": {"type": f"{kind}_delta", kind: text}})

    def _close(self) -> Iterator[JsonObject]:
        if self._block is not None:
            yield self._at({"type": "content_block_stop"})
        self._block = None

    def _at(self, fields: JsonObject) -> JsonObject:
        return {**fields, "index": len(self._message["content"]) - 1}


def _usage(usage: Mapping[str, float]) -> JsonObject:
    extra: dict[str, Any] = {"model_calls": usage.get("model_calls", 0), "cost": usage.get("cost", 0.0)}
    return {"input_tokens": usage.get("input_tokens", 0), "output_tokens": usage.get("output_tokens", 0), **extra}


def _error(refusal: Refused) -> JsonObject:
    kind = _ERRORS.get(refusal.status, "invalid_request_error" if refusal.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": str(refusal)}}


def _refuse(refusal: Refused) -> Response:
    return JSONResponse(_error(refusal), refusal.status)


routes = [
    Route("/v1/messages", with_refusals(create_message, _refuse), methods=["POST"]),
    Route("/v1/messages/count_tokens", with_refusals(count_tokens, _refuse), methods=["POST"]),
]
