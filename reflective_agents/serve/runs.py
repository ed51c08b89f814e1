"""Runs through the server's own API, so that they are queued, checked and resumed like all others.

Every call carries the caller's key, so callers may do here just what they may do there.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple, TypeAlias, TypedDict, TypeVar
from weakref import WeakKeyDictionary

import httpx
from langgraph.types import Durability
from langgraph_sdk import schema as sdk
from langgraph_sdk.errors import APIStatusError
from starlette.requests import Request

from reflective_agents.serve import log
from reflective_agents.serve.engine import IN_AEGRA
from reflective_agents.serve.graphs import REPORT
from reflective_agents.serve.in_process import own_client
from reflective_agents.serve.pending_tool_calls import PendingToolCall, pending_tool_calls
from reflective_agents.serve.refusals import NoAnswer, Refused
from reflective_agents.serve.run_stream import StreamPosition, until_silence
from reflective_agents.state import errors
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.settings import settings_of
from reflective_agents.text.structure import Json

T = TypeVar("T")
ENDED = ("success", "error", "timeout", "interrupted")
CANCELLED = "cancelled"
"""The code of the refusal that says so of a run."""
_RECONNECT = 0.5
"""Seconds between looks at a run whose stream has broken off."""
_SILENCE = 30.0
"""Seconds without a part of a run after which its server is asked whether it is over."""
_SILENCE_AFTER_END = 5.0
"""The same for a run that is over: what is left of its parts is there already."""

_MAX_REQUESTS = 20
"""Requests at a time: Aegra has 30 connections to its database, and fails a request that waits long for one."""

_PASSED_ON = "authorization", "x-api-key", "x-request-id"
"""Headers of a request that the server's own have, too: by the last one the log joins them."""
_semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
_background_tasks: set[asyncio.Task[None]] = set()


class Token(NamedTuple):
    """A piece of the answer."""

    text: str


class Result(NamedTuple):
    """How a run ended: its status, output, kind of error (empty if there was none), and the tool calls it waits for."""

    status: str
    output: JsonMapping
    error: str
    waiting: Sequence[PendingToolCall] = ()


Part: TypeAlias = Mapping[str, Json] | Token | Result
"""What happens in a run: an event, a piece of the answer, or the end."""


class Begin(TypedDict, total=False):
    """How a run begins: with an input, a command, or at a checkpoint."""

    input: JsonMapping
    command: sdk.Command
    checkpoint: sdk.Checkpoint


class ServerApi:
    """The API of the server that a request has come to, called as its sender."""

    def __init__(self, request: Request) -> None:
        self._client = own_client(request.scope)
        self._headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}

    async def state(self, thread_id: str) -> sdk.ThreadState:
        """Return the state of a thread, with what it waits for.

        Raises:
            Refused: if there is no such thread of the caller's.
        """
        return await self._call(lambda: self._client.threads.get_state(thread_id, headers=self._headers))

    async def state_after(self, thread_id: str, run_id: str) -> sdk.ThreadState | None:
        """Return the state that a run has left on its thread; None if it has left none.

        Raises:
            Refused: if there is no such thread of the caller's.
        """
        return await self._call(lambda: self._state_after(thread_id, run_id))

    async def _state_after(self, thread_id: str, run_id: str) -> sdk.ThreadState | None:
        states = await self._client.threads.get_history(
            thread_id, limit=1, metadata={"run_id": run_id}, headers=self._headers
        )
        return states[0] if states else None

    async def state_before(self, thread_id: str, run_id: str) -> sdk.ThreadState | None:
        """Return the state that the last run of a thread has begun at; None if it was its first one.

        Raises:
            Refused: if there is no such thread of the caller's.
        """
        states = await self.history(thread_id)
        return next((state for state in states if (state["metadata"] or {}).get("run_id") != run_id), None)

    async def start(
        self,
        thread_id: str,
        strategy: str,
        begin: Begin,
        context: JsonObject,
        *,
        tokens: bool,
        keeps_thread: bool = True,
    ) -> str:
        """Start a run and return its id. If this is cancelled meanwhile, the run is stopped.

        Args:
            thread_id: The thread, which is made if it does not exist.
            strategy: The strategy.
            begin: Its `input`, or the `command` or the `checkpoint` that it is resumed with.
            context: Its settings.
            tokens: Whether the answer is streamed while it is written.
            keeps_thread: Whether the thread is there afterwards.

        Raises:
            Refused: if the server refuses.
        """
        # A checkpoint between steps saves what was paid for before, or shows it on the thread: here there is neither.
        durability: Durability = "sync" if keeps_thread or not settings_of(strategy).asks_in_one_step else "exit"
        modes: list[sdk.StreamMode] = ["custom", "messages-tuple"] if tokens else ["custom"]
        # A thread that goes at once is not read for the answer: the run reports it.
        config: sdk.Config = {"configurable": {REPORT: True}} if IN_AEGRA and not keeps_thread else {}
        creating = asyncio.ensure_future(self._create(thread_id, strategy, begin, context, config, modes, durability))
        try:
            # A request that has been sent creates a run whether anybody waits or not: then it has to be stopped.
            run_id = await asyncio.shield(creating)
            log.name_run(run_id)
            return run_id
        except asyncio.CancelledError:
            in_background(self._stop_when_created(thread_id, creating))
            raise
        except APIStatusError as error:
            raise as_refusal(error) from error

    async def events(self, thread_id: str, run_id: str) -> AsyncIterator[Part]:
        """Yield what happens in a run, once, and finally how it ended. A stream that breaks off is resumed.

        Raises:
            Refused: if the server refuses: the thread was deleted meanwhile, for example.
        """
        position, error, ended, is_whole, status = StreamPosition(), "", False, False, ""
        report: JsonObject | None = None
        while True:
            try:
                parts = self._client.runs.join_stream(
                    thread_id, run_id, headers=self._headers, last_event_id=position.last_event_id()
                )
                # A stream that breaks off again and again may be that of a run that has ended.
                with suppress(httpx.TransportError):
                    async for part in until_silence(parts, _SILENCE_AFTER_END if ended else _SILENCE):
                        if position.is_repeat(part):
                            continue
                        if part.event == "custom" and REPORT in part.data:
                            report = part.data[REPORT]
                        elif part.event == "custom":
                            yield part.data
                        elif part.event == "messages" and part.data[0]["type"] in ("ai", "AIMessageChunk"):
                            yield Token(str(part.data[0]["content"]))
                        elif part.event == "error":
                            error = str((part.data or {}).get("error", ""))
                        elif part.event == "end":
                            is_whole, status = True, str((part.data or {}).get("status", ""))
                # Aegra tells at the end how the run has ended; of other ends its word comes before the deed.
                if status != "success":
                    async with _request_slot():
                        status = (await self._client.runs.get(thread_id, run_id, headers=self._headers))["status"]
                has_ended = status in ENDED
                if report and status == "success":
                    yield Result(status, report, error)
                    return
                if has_ended and (ended or (IN_AEGRA and is_whole)):
                    yield await self._result(thread_id, run_id, status, error)
                    return
            # The server restarts, or the connection broke: the run may go on meanwhile.
            except httpx.TransportError:
                has_ended = False
            except APIStatusError as refusal:
                if refusal.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise as_refusal(refusal) from refusal
                has_ended = False
            if has_ended:
                # `langgraph dev` may have left out the last parts, and after a silence Aegra just then sends them: ask
                # once more.
                ended = True
            else:
                await asyncio.sleep(_RECONNECT)

    async def _result(self, thread_id: str, run_id: str, status: str, error: str) -> Result:
        """Return how a run ended. Aegra has its values at the run only if all were streamed, so the thread is read."""
        async with _request_slot():
            if status in ("error", "timeout"):
                output = await self._client.runs.join(thread_id, run_id, headers=self._headers)
                return Result(status, output or {}, error)
            # Not the state of the thread, where other runs may have gone on since.
            state = await self._state_after(thread_id, run_id)
        if state is None:
            return Result(status, {}, error)
        return Result(status, values_of(state), error, pending_tool_calls(state))

    async def threads(self) -> list[sdk.Thread]:
        """Return the threads of the caller, the one used last first, without their values."""
        fields: list[sdk.ThreadSelectField] = ["thread_id", "status", "updated_at", "metadata"]
        return await self._call(
            lambda: self._client.threads.search(
                limit=100,
                sort_by="updated_at",
                sort_order="desc",
                select=fields,
                headers=self._headers,
            )
        )

    async def create_thread(self, thread_id: str, metadata: Mapping[str, str]) -> None:
        """Make a thread, with metadata that lists of threads show."""
        await self._call(
            lambda: self._client.threads.create(
                thread_id=thread_id, metadata={**metadata}, if_exists="do_nothing", headers=self._headers
            )
        )

    async def run(self, thread_id: str, run_id: str) -> sdk.Run:
        """Return a run.

        Raises:
            Refused: if there is no such run of the caller's.
        """
        return await self._call(lambda: self._client.runs.get(thread_id, run_id, headers=self._headers))

    async def last_run(self, thread_id: str) -> sdk.Run | None:
        """Return the last run of a thread; None if there was none."""
        runs = await self._call(lambda: self._client.runs.list(thread_id, limit=1, headers=self._headers))
        return runs[0] if runs else None

    async def history(self, thread_id: str) -> list[sdk.ThreadState]:
        """Return all states that a thread has gone through, the last first."""
        return await self._call(lambda: self._client.threads.get_history(thread_id, limit=1000, headers=self._headers))

    async def stop(self, thread_id: str, run_id: str) -> None:
        """Cancel a run, and wait until it has ended: its thread may be deleted then."""
        await self._call(lambda: self._client.runs.cancel(thread_id, run_id, wait=True, headers=self._headers))

    async def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with all its runs."""
        await self._call(lambda: self._client.threads.delete(thread_id, headers=self._headers))

    async def _call(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request.

        Raises:
            Refused: if the server refuses.
        """
        try:
            async with _request_slot():
                return await send()
        except APIStatusError as error:
            raise as_refusal(error) from error

    async def _create(
        self,
        thread_id: str,
        strategy: str,
        begin: Begin,
        context: JsonObject,
        config: sdk.Config,
        modes: Sequence[sdk.StreamMode],
        durability: Durability,
    ) -> str:
        async with _request_slot():
            run = await self._client.runs.create(
                thread_id,
                strategy,
                **begin,
                context=context,
                config=config,
                stream_mode=modes,
                durability=durability,
                # Parts are kept, so that a stream that breaks off can be resumed after its last one.
                stream_resumable=True,
                # Two runs on a thread would overwrite each other's state.
                multitask_strategy="reject",
                if_not_exists="create",
                headers=self._headers,
            )
        return str(run["run_id"])

    async def _stop_when_created(self, thread_id: str, creating: asyncio.Future[str]) -> None:
        await self.stop(thread_id, await creating)


def _request_slot() -> asyncio.Semaphore:
    """Return the semaphore of this event loop that bounds the requests to the server at a time."""
    return _semaphores.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_MAX_REQUESTS))


def in_background(work: Coroutine[None, None, None]) -> None:
    """Run a coroutine in the background; a reference is kept, so that it is not collected before its end."""
    task = asyncio.ensure_future(work)
    _background_tasks.add(task)
    task.add_done_callback(_background_tasks.discard)


def values_of(state: sdk.ThreadState) -> JsonObject:
    """Return the values of a thread; none before its first run."""
    return state["values"] if isinstance(state["values"], dict) else {}


def as_refusal(error: APIStatusError) -> Refused:
    """Convert the server's refusal to OpenAI's form."""
    body = error.body if isinstance(error.body, dict) else {}
    message = body.get("detail") or body.get("message") or error.message
    return Refused(str(message), status=error.status_code)


def failure(result: Result) -> NoAnswer | None:
    """Return why a run has no answer, if it has none."""
    failed = result.output.get("__error__") or {}
    kind = result.error or failed.get("error") or "Error"
    if failed or result.status in ("error", "timeout"):
        # Only the name of an error crosses the API.
        misuse = issubclass(getattr(errors, kind, Exception), errors.Misuse)
        return NoAnswer(failed.get("message") or kind, status=400 if misuse else 500, code=kind)
    outcome = result.output.get("outcome")
    if result.status == "interrupted" or outcome is None:
        return NoAnswer("the run was cancelled, or waits for a person", status=409, code=CANCELLED)
    return NoAnswer(outcome["reason"], status=502, code=outcome["status"]) if result.output["answer"] is None else None
