"""The requests that the server sends to itself: straight to its application, without a network between them."""

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import httpx
from langgraph_sdk.client import LangGraphClient
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_APPLICATION = "reflective_agents.application"
OWN_HOST = "reflective_agents"
"""Where the server's own requests come from, as the log of an application has it."""
_AHEAD = 32
"""Messages of an answer that wait for their reader at most: a client that reads slowly holds up what is sent."""
_exchanges: set[asyncio.Task[None]] = set()


class CallsItself:
    """Lets the routes of an application send requests to it: see `own_client`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app({**scope, _APPLICATION: self._app}, receive, send)


def own_client(scope: Scope) -> LangGraphClient:
    """Return a client of the server that a request has come to.

    Args:
        scope: The request's scope, which `CallsItself` has seen.
    """
    return _client(scope[_APPLICATION])


def is_own(scope: Scope) -> bool:
    """Tell whether the server has sent a request itself."""
    return (scope.get("client") or ("", 0))[0] == OWN_HOST


@cache
def _client(app: ASGIApp) -> LangGraphClient:
    return LangGraphClient(httpx.AsyncClient(transport=_InProcess(app), base_url="http://localhost", timeout=None))


class _InProcess(httpx.AsyncBaseTransport):
    """Hands requests to an application. Unlike `httpx.ASGITransport` it passes on what is streamed as it comes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return its answer once it begins."""
        exchange = _Exchange(self._app, _scope(request), await request.aread())
        start = await exchange.start()
        return httpx.Response(start["status"], headers=start.get("headers"), stream=exchange)


class _Exchange(httpx.AsyncByteStream):
    """A request, and its answer as it comes.

    The application works in a task of its own: it goes on if the sender leaves, and is told so, as by a network.
    """

    def __init__(self, app: ASGIApp, scope: Scope, body: bytes) -> None:
        self._request = [body]
        self._answer: asyncio.Queue[Message | None] = asyncio.Queue()
        self._left = asyncio.Event()
        self._may_go_on = asyncio.Event()
        self._may_go_on.set()
        task = asyncio.ensure_future(self._run(app, scope))
        _exchanges.add(task)  # a task that nobody refers to may be collected
        task.add_done_callback(self._end)

    async def start(self) -> Message:
        """Return how the answer starts."""
        try:
            return await self._next()
        except asyncio.CancelledError:
            await self.aclose()
            raise

    async def __aiter__(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._next()
            yield message.get("body", b"")
            more = message.get("more_body", False)

    async def aclose(self) -> None:
        """Leave."""
        self._left.set()
        self._may_go_on.set()

    async def _next(self) -> Message:
        message = await self._answer.get()
        if self._answer.qsize() < _AHEAD:
            self._may_go_on.set()
        if message is None:
            raise httpx.ReadError("the server has broken off its answer")
        return message

    async def _run(self, app: ASGIApp, scope: Scope) -> None:
        await app(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if self._request:
            return {"type": "http.request", "body": self._request.pop()}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self._left.is_set():
            return
        self._answer.put_nowait(message)
        if self._answer.qsize() >= _AHEAD:
            self._may_go_on.clear()
        await self._may_go_on.wait()

    def _end(self, task: asyncio.Task[None]) -> None:
        _exchanges.discard(task)
        self._answer.put_nowait(None)
        if not task.cancelled():
            task.exception()  # the application has logged it


def _scope(request: httpx.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": (OWN_HOST, 0),
        "server": (request.url.host, None),
    }
