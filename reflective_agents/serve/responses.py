"""OpenAI's responses over the strategies, as far as they are those of the norm Open Responses.

A response that is stored lies on its thread, and its id names its run: what follows it begins at the checkpoint that
the run has left, so several may follow the same one.
"""

from collections.abc import Iterator
from datetime import datetime
from http import HTTPStatus
from typing import NamedTuple

from langgraph_sdk import schema as sdk
from psycopg import OperationalError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from reflective_agents.serve.answering import (
    Answering,
    read_json,
    respond,
    stream,
    whole,
    with_refusals,
)
from reflective_agents.serve.pending_tool_calls import pending_tool_calls
from reflective_agents.serve.refusals import NoAnswer, Refused
from reflective_agents.serve.response_form import ResponseForm
from reflective_agents.serve.response_queries import ListQuery, StreamQuery, query_of
from reflective_agents.serve.response_records import ResponseRecord, response_records
from reflective_agents.serve.responses_request import ResponsesRequest, parse, with_answers
from reflective_agents.serve.run_key import RunKey, unknown_response
from reflective_agents.serve.runs import ENDED, Begin, ServerApi, in_background, values_of
from reflective_agents.state.json_types import JsonObject

_INSTRUCTIONS = "instructions"
"""The id of the message that holds the instructions, by which the next ones take its place."""


async def create_response(request: Request) -> Response:
    """Answer with a strategy; in the background a response is returned at once, and its run goes on."""
    given = await read_json(request)
    body, api = parse(given), ServerApi(request)
    if references := body.references():
        given = with_answers(given, {key: await _answer_of(api, key) for key in sorted(references)})
        body = parse(given)
    run = ResponseRun(api, body)
    await run.start()
    form = ResponseForm(run.key, body)
    if body.store:
        await _keep(api, run.key, ResponseRecord(given, form.created_at, {**run.reported}))
    if body.background and not body.stream:
        return JSONResponse(form.whole("queued"), headers=run.headers())
    return await respond(request, run, form)


async def _keep(api: ServerApi, key: RunKey, record: ResponseRecord) -> None:
    """Keep a record, or stop the run: nobody could fetch its response.

    Raises:
        Refused: if the database is away.
    """
    try:
        await response_records().add(key, record)
    except OperationalError as error:
        in_background(api.stop(*key))
        raise Refused("the response cannot be stored now: ask again", status=503, code="server_error") from error


async def _answer_of(api: ServerApi, key: RunKey) -> str:
    state = await api.state_after(*key)
    answer = None if state is None else values_of(state).get("answer")
    if answer is None or await response_records().get(key) is None:
        raise unknown_response(key.id("msg"), "input")
    return str(answer)


async def get_response(request: Request) -> Response:
    """Return a stored response as it is now, or stream it from its beginning, or from the event after one."""
    stored = await _Stored.of(request)
    query = query_of(request, StreamQuery)
    if not query.stream:
        return await stored.response()
    stored.body.stream = True
    run, form = stored.answering()
    events = stream(run, form, after=query.starting_after)
    return StreamingResponse(events, media_type="text/event-stream", headers=run.headers())


async def get_input_items(request: Request) -> Response:
    """List the items that a response was given."""
    stored = await _Stored.of(request)
    return JSONResponse(query_of(request, ListQuery).page(stored.body.input_items(stored.key)))


async def cancel_response(request: Request) -> Response:
    """Stop a response in the background, and return it."""
    stored = await _Stored.of(request)
    if not stored.body.background:
        raise Refused("only a response in the background is cancelled: end the connection of another")
    if not stored.has_ended:
        await stored.api.stop(*stored.key)
    return await (await _Stored.of(request)).response()


async def delete_response(request: Request) -> Response:
    """Delete a response, and its thread with the last one on it."""
    stored = await _Stored.of(request)
    if not stored.has_ended:
        await stored.api.stop(*stored.key)
    if not await response_records().delete(stored.key):
        await stored.api.delete_thread(stored.key.thread_id)
    return JSONResponse({"id": stored.key.id("resp"), "object": "response", "deleted": True})


class _Stored(NamedTuple):
    """A stored response of the caller's."""

    api: ServerApi
    key: RunKey
    record: ResponseRecord
    body: ResponsesRequest
    run: sdk.Run

    @classmethod
    async def of(cls, request: Request) -> "_Stored":
        """Return the response that a request names.

        Raises:
            Refused: if there is none, or it is another's.
        """
        name, api = request.path_params["response_id"], ServerApi(request)
        key = RunKey.of(name, "resp")
        record = await response_records().get(key)
        if record is None:
            raise unknown_response(name)
        try:
            run = await api.run(*key)
        except Refused as refusal:
            raise unknown_response(name) if refusal.status == HTTPStatus.NOT_FOUND else refusal from None
        return cls(api, key, record, parse({**record.body, "stream": False}), run)

    @property
    def has_ended(self) -> bool:
        """Whether its run has ended."""
        return self.run["status"] in ENDED

    def answering(self) -> "tuple[ResponseRun, ResponseForm]":
        """Return the run that is under way, or over, and the form of what it answers. Nobody who looks on stops it."""
        self.body.on_disconnect = "continue"
        run = ResponseRun(self.api, self.body)
        run.thread_id, run.run_id = self.key
        run.reported = self.record.reported
        completed_at = _seconds(self.run["updated_at"]) if self.has_ended else None
        return run, ResponseForm(self.key, self.body, self.record.created_at, completed_at)

    async def response(self) -> Response:
        """Return it as it is now."""
        run, form = self.answering()
        if not self.has_ended:
            return JSONResponse(form.whole("queued" if self.run["status"] == "pending" else "in_progress"))
        try:
            return JSONResponse(await whole(run, form))
        except NoAnswer as refusal:
            for _ in form.fail(refusal):
                pass
            return JSONResponse(form.whole())


def _seconds(moment: datetime | str) -> int:
    return int((datetime.fromisoformat(moment) if isinstance(moment, str) else moment).timestamp())


class ResponseRun(Answering):
    """The run behind a response.

    Args:
        api: The server, called as the client.
        body: The request.
    """

    def __init__(self, api: ServerApi, body: ResponsesRequest) -> None:
        super().__init__(api, body.chat())
        self._previous, self._instructions = body.previous(), body.instructions
        self.keeps_thread = body.store
        if self._previous is not None:
            self.thread_id = self._previous.thread_id

    @property
    def key(self) -> RunKey:
        """The run, once it has started."""
        return RunKey(self.thread_id, self.run_id)

    async def question(self) -> Begin:
        """Return how a question begins: after the response that it follows, or on a new thread.

        Raises:
            Refused: if there is no such response, or it waits for results of tools.
        """
        begin, before = Begin(), {}
        if self._previous is not None:
            state = await self._api.state_after(*self._previous)
            if state is None or await response_records().get(self._previous) is None:
                raise unknown_response(self._previous.id("resp"), "previous_response_id")
            if calls := pending_tool_calls(state):
                raise Refused(f"the result of {calls[0].name} is missing: send function_call_output items", "input")
            before = values_of(state)
            if before["strategy"] != self.request.strategy:
                raise Refused(f"that response is of {before['strategy']}, which goes on with it", "model")
            begin["checkpoint"] = state["checkpoint"]
        begin["input"] = {"messages": [*self._instruct(before), *self.request.question()]}
        return begin

    def _instruct(self, before: JsonObject) -> Iterator[JsonObject]:
        """Yield what makes these instructions the thread's, as those of the response before hold no longer."""
        if self._instructions:
            yield {"role": "system", "content": self._instructions, "id": _INSTRUCTIONS}
        elif any(message.get("id") == _INSTRUCTIONS for message in before.get("messages") or []):
            yield {"role": "remove", "content": "", "id": _INSTRUCTIONS}


_RESPONSE = "/v1/responses/{response_id}"
routes = [
    Route("/v1/responses", with_refusals(create_response), methods=["POST"]),
    Route(_RESPONSE, with_refusals(get_response)),
    Route(_RESPONSE, with_refusals(delete_response), methods=["DELETE"]),
    Route(f"{_RESPONSE}/cancel", with_refusals(cancel_response), methods=["POST"]),
    Route(f"{_RESPONSE}/input_items", with_refusals(get_input_items)),
]
