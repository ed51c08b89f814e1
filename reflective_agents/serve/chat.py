"""OpenAI's chat completions over the strategies: `lats`, or with a model for it `lats:openai:gpt-4.1-mini`."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from reflective_agents.serve.chat_request import ChatRequest, parse
from reflective_agents.serve.completions import (
    DONE,
    Completion,
    StreamedAnswer,
    cut,
    event,
    pieces,
    progress_line,
    usage_of,
)
from reflective_agents.serve.keys import UnknownKey, user_of
from reflective_agents.serve.pending_tool_calls import pending_tool_calls, resume, thread_of, tool_calls
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Begin, Part, Result, ServerApi, Token, failure, in_background, values_of
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import strategy_names
from reflective_agents.text.clean import clean_data
from reflective_agents.text.structure import Json

THREAD = "x-thread-id"
_WITHDRAWN = Refused(
    "the model broke off, or called a tool, after a part of its answer was sent: ask again",
    status=502,
    code="withdrawn",
)


async def models(request: Request) -> Response:
    """List the strategies: each is a model."""
    try:
        identify(request)
    except Refused as refusal:
        return refusal.response()
    offered = [name for name in strategy_names() if policy().offers(name)]
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "reflective-agents"} for name in offered]
    return JSONResponse({"object": "list", "data": listed})


async def chat_completions(request: Request) -> Response:
    """Answer a conversation with a strategy."""
    try:
        identify(request)
        chat_request = parse(await read_json(request))
        run = ChatRun(ServerApi(request), chat_request)
        await run.start()
    except Refused as refusal:
        return refusal.response()
    headers = {THREAD: run.thread_id}
    if chat_request.stream:
        return StreamingResponse(run.stream(), media_type="text/event-stream", headers=headers)
    whole = asyncio.ensure_future(run.whole())
    disconnected = asyncio.ensure_future(_disconnected(request))
    # Starlette tells nobody that a client has left while no answer is written.
    await asyncio.wait({whole, disconnected}, return_when=asyncio.FIRST_COMPLETED)
    disconnected.cancel()
    if not whole.done():
        whole.cancel()
    with suppress(asyncio.CancelledError):
        try:
            return JSONResponse(await whole, headers=headers)
        except Refused as refusal:
            return refusal.response()
    # Nginx's status for a client that has closed its request; nobody reads it.
    return Response(status_code=499)


class ChatRun:
    """The run that answers a chat request."""

    def __init__(self, api: ServerApi, request: ChatRequest) -> None:
        self._api, self._request, self._results = api, request, request.tool_results()
        thread_id = thread_of(next(iter(self._results))) if self._results else str(uuid4())
        self.thread_id = request.thread_id or thread_id
        self._run_id = ""
        self._reported_usage: Mapping[str, float] = {}
        self._completion = Completion(f"chatcmpl-{uuid4().hex}", request.model, {"thread_id": self.thread_id})

    async def start(self) -> None:
        """Start the run, or go on with the one that has waited for results of the client's tools.

        Raises:
            Refused: if it cannot be done.
        """
        request = self._request
        context = request.context()
        begin = await self._resume() if self._results else Begin(input={"messages": request.question()})
        # An answer in a form is put into it when it is whole: its words must not be sent before.
        tokens = request.stream and request.answer_schema is None
        self._run_id = await self._api.start(self.thread_id, request.strategy, begin, context, tokens=tokens)

    async def _resume(self) -> Begin:
        state = await self._api.state(self.thread_id)
        values = values_of(state)
        resume_values = resume(self.thread_id, pending_tool_calls(state), self._results)
        if values["strategy"] != self._request.strategy:
            raise Refused(f"{values['strategy']} waits for these results, not {self._request.strategy}", "model")
        self._reported_usage = values["usage"]
        return {"command": {"resume": resume_values}}

    async def result(self) -> Result:
        """Return how the run ended."""
        async for part in self._events():
            if isinstance(part, Result):
                return part
        raise AssertionError("a run ends with its result")

    async def whole(self) -> JsonObject:
        """Return the answer in one piece.

        Raises:
            Refused: if there is none.
        """
        thought = ""
        async for part in self._events():
            if isinstance(part, Result):
                reply = self._reply(part)
                message = {"role": "assistant", **reply, "reasoning_content": thought, "refusal": None}
                return self._completion.whole(message, _finish_reason(part), self._usage(part))
            if not isinstance(part, Token):
                thought += progress_line(part)
        raise AssertionError("a run ends with its result")

    async def stream(self) -> AsyncIterator[str]:
        """Stream what the run does, and the answer as it is written, in chunks."""
        chunk, streamed = self._completion.chunk, StreamedAnswer(self._request.stops)
        yield chunk({"role": "assistant", "content": ""})
        async for part in self._events():
            if isinstance(part, Token):
                if text := streamed.add(part.text):
                    yield chunk({"content": text})
                continue
            if not isinstance(part, Result):
                yield chunk({"reasoning_content": progress_line(part)})
                continue
            try:
                reply = self._reply(part)
            except Refused as refusal:
                yield event(refusal.body())
                return
            for index, call in enumerate(reply.get("tool_calls", [])):
                yield chunk({"tool_calls": [{"index": index, **call}]})
            rest = streamed.rest(reply["content"] or "")
            if rest is None:
                yield event(_WITHDRAWN.body())
                return
            for piece in pieces(rest):
                yield chunk({"content": piece})
            yield chunk({}, _finish_reason(part))
            if self._request.stream_options and self._request.stream_options.include_usage:
                yield self._completion.cost(self._usage(part))
        yield DONE

    def _reply(self, result: Result) -> JsonObject:
        """Return what a run replies: its answer, or the calls of the client's tools that it waits for."""
        if result.waiting:
            return {"content": None, "tool_calls": tool_calls(self.thread_id, result.waiting)}
        return {"content": _answer(result, self._request)}

    def _usage(self, result: Result) -> dict[str, float]:
        """Return the cost of this answer, without what the answer that asked for tool results has reported."""
        spent = result.output["usage"]
        return usage_of({name: amount - self._reported_usage.get(name, 0) for name, amount in spent.items()})

    async def _events(self) -> AsyncIterator[Part]:
        """Yield the events of the run, then clean up. If the client leaves, the run stops unless it was to go on."""
        ended = waits = False
        try:
            async for part in self._api.events(self.thread_id, self._run_id):
                ended = isinstance(part, Result)
                waits = isinstance(part, Result) and bool(part.waiting)
                yield part
        finally:
            if not waits and (ended or self._request.on_disconnect == "cancel"):
                # In the background: a cancelled request cannot wait any more.
                in_background(self._clean_up(ended))

    async def _clean_up(self, ended: bool) -> None:
        if not ended:
            await self._api.stop(self.thread_id, self._run_id)
        if self._request.thread_id is None:
            await self._api.delete_thread(self.thread_id)


def _answer(result: Result, request: ChatRequest) -> str:
    if refusal := failure(result):
        raise refusal
    answer, data = str(result.output["answer"]), result.output.get("structured_response")
    if request.answer_schema is not None and data is not None:
        answer = json.dumps(data, ensure_ascii=False)
    elif request.answer_schema is not None and _finish_reason(result) != "length":
        raise Refused(result.output["outcome"]["reason"], status=502, code="invalid_output")
    return cut(answer, request.stops)


def _finish_reason(result: Result) -> str:
    if result.waiting:
        return "tool_calls"
    return "length" if result.output["outcome"]["status"] == "limit_reached" else "stop"


def identify(request: Request) -> None:
    """Refuse a request without a valid key.

    Raises:
        Refused: with 401.
    """
    try:
        user_of(request.headers)
    except UnknownKey as error:
        raise Refused(str(error), status=401, code="invalid_api_key") from error


async def read_json(request: Request) -> dict[str, Json]:
    """Return the body of a request.

    Raises:
        Refused: if it is not a JSON object.
    """
    try:
        body = clean_data(await request.json())
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refused("the body is not a JSON object")
    return body


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


routes = [
    Route("/v1/models", models),
    Route("/v1/chat/completions", chat_completions, methods=["POST"]),
]
