"""A model's server that costs next to nothing: each call is answered with the same bytes, after the same time."""

import asyncio
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

_BODY = json.dumps(
    {
        "id": "canned",
        "object": "chat.completion",
        "created": 0,
        "model": "canned",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Nothing is easier.\nAnswer: x"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 8, "total_tokens": 108},
    }
).encode()
_HEAD = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(_BODY)}\r\n\r\n"
_ANSWER = _HEAD.encode() + _BODY


class Canned:
    """The other end of the server's process."""

    def __init__(self, pipe: "Connection[bool, float]", pid: int) -> None:
        self._pipe = pipe
        self.pid = pid

    def cpu(self) -> float:
        """Ask for the seconds of processor time that the server has taken."""
        self._pipe.send(True)
        return self._pipe.recv()


@contextmanager
def canned(latency: float) -> Iterator[Canned]:
    """Run a server that answers each call after `latency` seconds; the environment points to it meanwhile."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=_serve, args=(theirs, latency), daemon=True)
    process.start()
    theirs.close()
    before = dict(os.environ)
    os.environ.update(OPENAI_BASE_URL=ours.recv(), OPENAI_API_KEY="test", LANGSMITH_TRACING="false")
    try:
        yield Canned(ours, process.pid or 0)
    finally:
        os.environ.clear()
        os.environ.update(before)
        ours.send(False)
        process.join()


class _Connection(asyncio.Protocol):
    """Reads requests, whose bodies have a length, and answers each of them later."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, separator, body = self._read.partition(b"\r\n\r\n")
        if separator and len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            self._read = b""
            asyncio.get_running_loop().call_later(self._latency, self._transport.write, _ANSWER)


def _serve(pipe: "Connection[str | float, bool]", latency: float) -> None:
    asyncio.run(_listen(pipe, latency))


async def _listen(pipe: "Connection[str | float, bool]", latency: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(latency), "127.0.0.1", 0, backlog=1000)
    pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    while await asyncio.to_thread(pipe.recv):
        pipe.send(time.process_time())
