"""OpenAI's chat completions over the strategies: `lats`, or `lats:openai:gpt-4.1-mini` with a model of one's own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from reflective_agents.nodes.asking.answer_form import fits
from reflective_agents.serve.asked import ChatRequest, parse
from reflective_agents.serve.completions import DONE, Completion, Saying, cut, event, pieces, told, usage_of
from reflective_agents.serve.keys import Unknown, user_of
from reflective_agents.serve.pending_tool_calls import pending_tool_calls, resume, thread_of, tool_calls
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Begin, OwnApi, Part, Result, Token, failure, in_background, values_of
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
        asked = parse(await read_json(request))
        answering = Answering(OwnApi(request), asked)
        await answering.start()
    except Refused as refusal:
        return refusal.response()
    headers = {THREAD: answering.thread_id}
    if asked.stream:
        return StreamingResponse(answering.stream(), media_type="text/event-stream", headers=headers)
    whole = asyncio.ensure_future(answering.whole())
    left = asyncio.ensure_future(_disconnected(request))
    await asyncio.wait({whole, left}, return_when=asyncio.FIRST_COMPLETED)
    left.cancel()
    if not whole.done():
        whole.cancel()
    with suppress(asyncio.CancelledError):
        try:
            return JSONResponse(await whole, headers=headers)
        except Refused as refusal:
            return refusal.response()
    return Response(status_code=499)


class Answering:
    """A run on its way to an answer."""

    def __init__(self, api: OwnApi, asked: ChatRequest) -> None:
        self._api, self._asked, self._results = api, asked, asked.results()
        named = thread_of(next(iter(self._results))) if self._results else str(uuid4())
        self.thread_id = asked.thread_id or named
        self._run_id = ""
        self._paid: Mapping[str, float] = {}
        self._completion = Completion(f"chatcmpl-{uuid4().hex}", asked.model, {"thread_id": self.thread_id})

    async def start(self) -> None:
        """Start the run, or go on with the one that has waited for results of the client's tools.

        Raises:
            Refused: if it cannot be done.
        """
        asked = self._asked
        context = asked.context()
        begin = await self._resume() if self._results else Begin(input={"messages": asked.question()})
        tokens = asked.stream and asked.answer_schema is None
        self._run_id = await self._api.start(self.thread_id, asked.strategy, begin, context, tokens=tokens)

    async def _resume(self) -> Begin:
        state = await self._api.state(self.thread_id)
        values = values_of(state)
        given = resume(self.thread_id, pending_tool_calls(state), self._results)
        if values["strategy"] != self._asked.strategy:
            raise Refused(f"{values['strategy']} waits for these results, not {self._asked.strategy}", "model")
        self._paid = values["usage"]
        return {"command": {"resume": given}}

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
                said = {"role": "assistant", **await self._said(part), "reasoning_content": thought, "refusal": None}
                return self._completion.whole(said, _finish(part), self._usage(part))
            if not isinstance(part, Token):
                thought += told(part)
        raise AssertionError("a run ends with its result")

    async def stream(self) -> AsyncIterator[str]:
        """Stream what the run does, and the answer as it is written, in chunks."""
        chunk, saying = self._completion.chunk, Saying(self._asked.stops)
        yield chunk({"role": "assistant", "content": ""})
        async for part in self._events():
            if isinstance(part, Token):
                if text := saying.more(part.text):
                    yield chunk({"content": text})
                continue
            if not isinstance(part, Result):
                yield chunk({"reasoning_content": told(part)})
                continue
            try:
                said = await self._said(part)
            except Refused as refusal:
                yield event(refusal.body())
                return
            for place, call in enumerate(said.get("tool_calls", [])):
                yield chunk({"tool_calls": [{"index": place, **call}]})
            rest = saying.rest(said["content"] or "")
            if rest is None:
                yield event(_WITHDRAWN.body())
                return
            for piece in pieces(rest):
                yield chunk({"content": piece})
            yield chunk({}, _finish(part))
            if self._asked.stream_options and self._asked.stream_options.include_usage:
                yield self._completion.cost(self._usage(part))
        yield DONE

    async def _said(self, result: Result) -> JsonObject:
        """Return what a run says: its answer, or the calls of the client's tools that it waits for."""
        if result.waiting:
            return {"content": None, "tool_calls": tool_calls(self.thread_id, result.waiting)}
        return {"content": await _answer(result, self._asked)}

    def _usage(self, result: Result) -> dict[str, float]:
        """Return what this answer has cost; calls that an earlier one has reported are not reported twice."""
        spent = result.output["usage"]
        return usage_of({name: amount - self._paid.get(name, 0) for name, amount in spent.items()})

    async def _events(self) -> AsyncIterator[Part]:
        """Yield the events of the run. If the listener stops, so does the run; what nobody will ask for is deleted."""
        ended = waits = False
        try:
            async for part in self._api.events(self.thread_id, self._run_id):
                ended = isinstance(part, Result)
                waits = isinstance(part, Result) and bool(part.waiting)
                yield part
        finally:
            if not waits and (ended or self._asked.on_disconnect == "cancel"):
                in_background(self._leave(ended))

    async def _leave(self, ended: bool) -> None:
        if not ended:
            await self._api.stop(self.thread_id, self._run_id)
        if self._asked.thread_id is None:
            await self._api.forget(self.thread_id)


async def _answer(result: Result, asked: ChatRequest) -> str:
    if refusal := failure(result):
        raise refusal
    answer, schema = str(result.output["answer"]), asked.answer_schema
    if schema is not None and _finish(result) != "length" and not await fits(schema, answer):
        raise Refused(result.output["outcome"]["reason"], status=502, code="invalid_output")
    return cut(answer, asked.stops)


def _finish(result: Result) -> str:
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
    except Unknown as error:
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
