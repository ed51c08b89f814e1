"""Requests of the server to itself."""

import asyncio

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from reflective_agents.serve.in_process import CallsItself, own_client

PARTS = 500


class Streaming:
    """An application that streams parts, and counts those that it could send."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.sent, self.fault = 0, fault
        self.ended = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream."""
        if scope["type"] == "lifespan":
            self.client = own_client(scope).http.client
            return
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(PARTS):
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
                self.sent += 1
            if self.fault:
                raise self.fault
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.ended.set()


async def client_of(app: Streaming) -> httpx.AsyncClient:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        pass

    await CallsItself(app)({"type": "lifespan"}, receive, send)
    return app.client


async def test_a_stream_waits_for_its_reader() -> None:
    app = Streaming()
    async with (await client_of(app)).stream("GET", "/") as answer:
        parts = answer.aiter_raw()
        await anext(parts)
        await asyncio.sleep(0.01)
        assert app.sent < PARTS / 2
        assert 1 + len([part async for part in parts if part]) == PARTS


async def test_who_leaves_holds_up_nothing() -> None:
    app = Streaming()
    async with (await client_of(app)).stream("GET", "/") as answer:
        await anext(answer.aiter_raw())
    await asyncio.wait_for(app.ended.wait(), 5)
    assert app.sent == PARTS


async def test_what_breaks_off_is_read_to_there() -> None:
    app, read = Streaming(OSError("gone")), list[bytes]()

    async def read_on(answer: httpx.Response) -> None:
        async for part in answer.aiter_raw():
            read.append(part)

    async with (await client_of(app)).stream("GET", "/") as answer:
        with pytest.raises(httpx.ReadError):
            await read_on(answer)
    assert len(read) == PARTS
