"""What the protocols of chat clients share: the run that answers a request, and its answer, whole or streamed.

What an answer looks like is a `Form`: `completions` for `/v1/chat/completions`, `responses` for `/v1/responses`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol, TypeAlias
from urllib.parse import quote
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from reflective_agents.serve.chat_request import IGNORED, ChatRequest
from reflective_agents.serve.keys import UnknownKey, user_of
from reflective_agents.serve.pending_tool_calls import pending_tool_calls, resume, thread_of, tool_calls
from reflective_agents.serve.refusals import NoAnswer, Refused
from reflective_agents.serve.runs import Begin, Result, ServerApi, Token, failure, in_background, values_of
from reflective_agents.serve.streaming import StreamedAnswer, cut, pieces
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.text.clean import clean_data
from reflective_agents.text.structure import Json

_WITHDRAWN = NoAnswer(
    "the model broke off, or called a tool, after a part of its answer was sent: ask again",
    status=502,
    code="withdrawn",
)
Progress: TypeAlias = Mapping[str, Json]
"""An event of the run."""
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class Reply(NamedTuple):
    """What a run has replied at its end.

    Attributes:
        answer: The answer; None if the run waits for tools of the client.
        calls: The calls that it waits for, as chat completions have them.
        at_limit: Whether a limit has ended the run.
        usage: What the run has spent since it last replied.
    """

    answer: str | None
    calls: list[JsonObject]
    at_limit: bool
    usage: Mapping[str, float]


class Form(Protocol):
    """One answer in the words of a protocol. It gets all parts in their order, and yields the events of a stream.

    Attributes:
        last: What ends a stream that has not failed.
    """

    last: str

    def begin(self) -> Iterator[JsonObject]:
        """Begin."""
        ...

    def progress(self, progress: Progress) -> Iterator[JsonObject]:
        """Add an event of the run."""
        ...

    def text(self, text: str) -> Iterator[JsonObject]:
        """Add a piece of the answer."""
        ...

    def end(self, reply: Reply) -> Iterator[JsonObject]:
        """End, after all pieces of the answer."""
        ...

    def fail(self, refusal: Refused) -> Iterator[JsonObject]:
        """End without an answer."""
        ...

    def whole(self) -> JsonObject:
        """Return the answer in one piece, after its end."""
        ...

    def encode(self, data: JsonObject) -> str:
        """Return an event as it is sent."""
        ...


DONE = "data: [DONE]\n\n"
THREAD = "x-thread-id"
"""The header of an answer that names the thread where the run happens; what is not ASCII is percent-encoded."""
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


async def respond(request: Request, run: "Answering", form: Form) -> Response:
    """Answer a request with a run that has started, and stop the run if its client leaves.

    Raises:
        Refused: if there is no answer, and it is not streamed.
    """
    headers = run.headers()
    if run.request.stream:
        return StreamingResponse(stream(run, form), media_type="text/event-stream", headers=headers)
    answer = asyncio.ensure_future(whole(run, form))
    disconnected = asyncio.ensure_future(_disconnected(request))
    try:
        # Starlette tells nobody that a client has left while no answer is written.
        await asyncio.wait({answer, disconnected}, return_when=asyncio.FIRST_COMPLETED)
    finally:  # also when a server that ends closes its connections
        disconnected.cancel()
        answer.cancel()
    with suppress(asyncio.CancelledError):
        return JSONResponse(await answer, headers=headers)
    # Nginx's status for a client that has closed its request; nobody reads it.
    return Response(status_code=499)


async def whole(run: "Answering", form: Form) -> JsonObject:
    """Return the answer of a run in one piece.

    Raises:
        Refused: if there is none.
    """
    async for _ in run.events(form):
        pass
    return form.whole()


async def stream(run: "Answering", form: Form, after: int = -1) -> AsyncIterator[str]:
    """Yield the answer of a run as the events of a stream, without those up to a number."""
    number = -1
    try:
        async for event in run.events(form):
            if (number := number + 1) > after:
                yield form.encode(event)
    except Refused as refusal:
        for event in form.fail(refusal):
            if (number := number + 1) > after:
                yield form.encode(event)
    else:
        if form.last:
            yield form.last


class Answering:
    """The run that answers a request.

    Args:
        api: The server, called as the client.
        request: The request.

    Attributes:
        thread_id: The thread that it happens on.
        keeps_thread: Whether the thread is there afterwards.
        results: The results of tools that a run goes on with.
        reported: What earlier answers of the same turn have reported as spent.
    """

    def __init__(self, api: ServerApi, request: ChatRequest) -> None:
        self.request, self.results = request, request.tool_results()
        self.thread_id = request.thread_id or (thread_of(next(iter(self.results))) if self.results else str(uuid4()))
        self.keeps_thread = request.thread_id is not None
        self._api = api
        self.run_id = ""
        self.reported: Mapping[str, float] = {}

    def headers(self) -> dict[str, str]:
        """Return the headers of the answer: where the run happens, and what of the request it does not do."""
        ignored = self.request.ignored
        return {THREAD: quote(self.thread_id, safe=_PRINTABLE)} | ({IGNORED: ", ".join(ignored)} if ignored else {})

    async def start(self) -> None:
        """Start the run, or go on with the one that has waited for results of the client's tools.

        Results that are sent again, as by a client whose connection broke, begin nothing: their run answers.

        Raises:
            Refused: if it cannot be done.
        """
        try:
            await self._start()
        except Refused:
            if not self.results or not await self._join():
                raise

    async def _start(self) -> None:
        request = self.request
        context = request.context()
        begin = await self._resume() if self.results else await self.question()
        # An answer in a form is put into it when it is whole: its words must not be sent before.
        tokens = request.stream and request.answer_schema is None
        self.run_id = await self._api.start(
            self.thread_id, request.strategy, begin, context, tokens=tokens, keeps_thread=self.keeps_thread
        )

    async def question(self) -> Begin:
        """Return how a new question begins.

        Raises:
            Refused: if it cannot be put there.
        """
        return Begin(input={"messages": self.request.question()})

    async def _resume(self) -> Begin:
        state = await self._api.state(self.thread_id)
        values = values_of(state)
        resume_values = resume(self.thread_id, pending_tool_calls(state), self.results)
        if values["strategy"] != self.request.strategy:
            raise Refused(f"{values['strategy']} waits for these results, not {self.request.strategy}", "model")
        self.reported = values["usage"]
        return {"command": {"resume": resume_values}}

    async def _join(self) -> bool:
        """Find the last run of the thread, if it goes on with these results; tell whether it does."""
        run = await self._api.last_run(self.thread_id)
        if run is None:
            return False
        before = await self._api.state_before(self.thread_id, run["run_id"])
        calls = {call["id"] for call in tool_calls(self.thread_id, pending_tool_calls(before))} if before else set()
        if before is None or calls != self.results.keys():
            return False
        self.run_id, self.reported = run["run_id"], values_of(before)["usage"]
        return True

    async def events(self, form: Form) -> AsyncIterator[JsonObject]:
        """Yield the answer in a form, as it happens.

        Raises:
            Refused: if there is none.
        """
        streamed = StreamedAnswer(self.request.stops)
        for event in form.begin():
            yield event
        async for part in self.parts():
            for event in self._of_part(part, streamed, form):
                yield event

    def _of_part(self, part: Progress | Token | Result, streamed: StreamedAnswer, form: Form) -> Iterator[JsonObject]:
        if isinstance(part, Token):
            # Whole, an answer is what the run has chosen, whatever was streamed to others before.
            if self.request.stream and (text := streamed.add(part.text)):
                yield from form.text(text)
        elif isinstance(part, Result):
            reply = self._reply(part)
            rest = streamed.rest(reply.answer or "")
            if rest is None:
                raise _WITHDRAWN
            for piece in pieces(rest):
                yield from form.text(piece)
            yield from form.end(reply)
        else:
            yield from form.progress(part)

    def _reply(self, result: Result) -> Reply:
        """Return what a run replies: its answer, or the calls of the client's tools that it waits for."""
        calls = tool_calls(self.thread_id, result.waiting)
        answer = None if calls else _answer(result, self.request)
        # Without what the answer has reported that asked for results of tools.
        spent = {name: most - self.reported.get(name, 0) for name, most in result.output["usage"].items()}
        return Reply(answer, calls, not calls and _at_limit(result.output), spent)

    async def parts(self) -> AsyncIterator[Progress | Token | Result]:
        """Yield the parts of the run, then clean up. If the client leaves, the run stops unless it was to go on."""
        ended = waits = False
        try:
            async for part in self._api.events(self.thread_id, self.run_id):
                ended = isinstance(part, Result)
                waits = isinstance(part, Result) and bool(part.waiting)
                yield part
        finally:
            if not waits and (ended or self.request.on_disconnect == "cancel"):
                # In the background: a cancelled request cannot wait any more.
                in_background(self._clean_up(ended))

    async def _clean_up(self, ended: bool) -> None:
        if not ended:
            await self._api.stop(self.thread_id, self.run_id)
        if not self.keeps_thread:
            await self._api.delete_thread(self.thread_id)


def _answer(result: Result, request: ChatRequest) -> str:
    if refusal := failure(result):
        raise refusal
    answer, data = str(result.output["answer"]), result.output.get("structured_response")
    if request.answer_schema is not None and data is not None:
        answer = json.dumps(data, ensure_ascii=False)
    elif request.answer_schema is not None and not _at_limit(result.output):
        raise NoAnswer(result.output["outcome"]["reason"], status=502, code="invalid_output")
    return cut(answer, request.stops)


def _at_limit(output: JsonMapping) -> bool:
    return bool(output["outcome"]["status"] == "limit_reached")


def identify(request: Request) -> None:
    """Refuse a request without a valid key.

    Raises:
        Refused: with 401.
    """
    try:
        user_of(request.headers)
    except UnknownKey as error:
        raise Refused(str(error), status=401, code="invalid_api_key") from error


def with_refusals(handler: Handler, refuse: Callable[[Refused], Response] = Refused.response) -> Handler:
    """Make a handler require a key, and answer refusals in OpenAI's form, or in another one."""

    async def answer(request: Request) -> Response:
        try:
            identify(request)
            return await handler(request)
        except Refused as refusal:
            return refuse(refusal)

    return answer


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
