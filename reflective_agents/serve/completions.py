"""OpenAI's chat completions over the strategies: `lats`, or with a model for it `lats:openai:gpt-4.1-mini`."""

import time
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reflective_agents.serve.answering import DONE, Answering, Progress, Reply, read_json, respond, with_refusals
from reflective_agents.serve.chat_request import parse
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import ServerApi
from reflective_agents.serve.streaming import event, progress_line
from reflective_agents.state.json_types import JsonObject


async def chat_completions(request: Request) -> Response:
    """Answer a conversation with a strategy."""
    chat_request = parse(await read_json(request))
    run = Answering(ServerApi(request), chat_request)
    await run.start()
    options = chat_request.stream_options
    form = Completion(
        chat_request.model, {"thread_id": run.thread_id}, include_usage=bool(options and options.include_usage)
    )
    return await respond(request, run, form)


class Completion:
    """One answer on its way to the client: a `Form`.

    Args:
        model: The model as the client named it.
        include_usage: Whether a stream reports what it has cost.
        extra: Fields of the answer and of each chunk, besides those of OpenAI.
    """

    last = DONE

    def __init__(self, model: str, extra: Mapping[str, str], *, include_usage: bool = False) -> None:
        self._base = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": model, **extra}
        self._include_usage = include_usage
        self._thought = ""
        self._reply: Reply | None = None

    def begin(self) -> Iterator[JsonObject]:
        """Begin with the role."""
        yield self._chunk({"role": "assistant", "content": ""})

    def progress(self, progress: Progress) -> Iterator[JsonObject]:
        """Add an event of the run to the reasoning."""
        self._thought += (line := progress_line(progress))
        yield self._chunk({"reasoning_content": line})

    def text(self, text: str) -> Iterator[JsonObject]:
        """Add a piece of the answer."""
        yield self._chunk({"content": text})

    def end(self, reply: Reply) -> Iterator[JsonObject]:
        """End with the calls of tools, the reason, and the cost if the client wants to know it."""
        self._reply = reply
        for index, call in enumerate(reply.calls):
            yield self._chunk({"tool_calls": [{"index": index, **call}]})
        yield self._chunk({}, _finish_reason(reply))
        if self._include_usage:
            yield self._data("chat.completion.chunk", choices=[], usage=usage_of(reply.usage))

    def fail(self, refusal: Refused) -> Iterator[JsonObject]:
        """End with an error."""
        yield refusal.body()

    def whole(self) -> JsonObject:
        """Return the answer in one piece."""
        assert self._reply is not None
        message: JsonObject = {"role": "assistant", "content": self._reply.answer, "refusal": None}
        message |= {"reasoning_content": self._thought}
        message |= {"tool_calls": self._reply.calls} if self._reply.calls else {}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(self._reply)}
        return self._data("chat.completion", choices=[choice], usage=usage_of(self._reply.usage))

    def encode(self, data: JsonObject) -> str:
        """Return an event as it is sent."""
        return event(data)

    def _chunk(self, delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._data("chat.completion.chunk", choices=[choice])

    def _data(self, kind: str, **fields: Any) -> JsonObject:
        return {**self._base, "object": kind, **fields}


def _finish_reason(reply: Reply) -> str:
    if reply.calls:
        return "tool_calls"
    return "length" if reply.at_limit else "stop"


def usage_of(usage: Mapping[str, float]) -> dict[str, float]:
    """Translate the cost of a run into OpenAI's terms, and add its calls and its dollars."""
    prompt, completion = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    extra = {"model_calls": usage.get("model_calls", 0), "cost": usage.get("cost", 0.0)}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **extra}


route = Route("/v1/chat/completions", with_refusals(chat_completions), methods=["POST"])
