"""Runs a small HTTP server on this machine, in the running event loop or in a thread of its own."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from aiohttp import web
from anyio.from_thread import start_blocking_portal


class LocalServer(ABC):
    """A server on 127.0.0.1 that lives as long as a `with` block.

    async with Server() as server: ...            # in the running event loop
    with Server().threaded() as server: ...       # in its own thread, for synchronous code and other processes
    """

    def __init__(self, port: int = 0) -> None:
        """Choose the port; 0 takes any that is free."""
        self.port = port

    @abstractmethod
    def routes(self) -> list[web.RouteDef]:
        """List the routes that the server answers."""

    @property
    def address(self) -> str:
        """Where the server listens, such as "http://127.0.0.1:8080"; it is known once the server runs."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        """Start to listen."""
        app = web.Application(client_max_size=2**26)
        app.add_routes(self.routes())
        self._closing = asyncio.Event()
        # A client that gives up cancels its handler, so that a hanging call ends with it.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection, also those that hang."""
        self._closing.set()
        await self._runner.cleanup()

    @contextmanager
    def threaded(self) -> Iterator[Self]:
        """Run the server in a thread with its own event loop."""
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(self):
            yield self

    async def hang(self, http: web.Request) -> web.StreamResponse:
        """Give no answer until the client gives up or the server closes."""
        await self._closing.wait()
        return reset(http)


def reset(http: web.Request) -> web.StreamResponse:
    """Break the connection without an answer."""
    if http.transport is not None:
        http.transport.abort()
    return web.Response()


def cut_in_half(text: str) -> web.Response:
    """Return a JSON response whose body breaks off in the middle."""
    return web.Response(text=text[: len(text) // 2], content_type="application/json")
