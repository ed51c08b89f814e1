"""How much of a reply over HTTP is read: a server may send without end, or pack gigabytes into a megabyte.

Clients unpack a reply as a whole, and in steps without a bound, so it is unpacked here. They also take long for each
list and object, and read an event of many lines in quadratic time, both on the event loop: those are counted here.
"""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2

from reflective_agents.text.json_signs import SIGNS, signs_outside_texts

MOST = 8_000_000
"""Bytes of a reply, unpacked."""
MOST_IN_PARTS = 32_000_000
"""Bytes of a stream of events, which are read one by one, and of vectors: 256 of 4,096 numbers in words."""
MOST_SIGNS, MOST_WITH_PROBABILITIES = 100_000, 400_000
"""Commas and brackets of a reply that is read as a whole, but for vectors; and of one that was asked for the log
probabilities of its tokens, each of which has twelve."""
MOST_OF_EVENT = 2_000_000
"""Bytes of an event."""
MOST_SIGNS_OF_EVENT = 3_000
"""Commas, brackets and quotation marks outside of texts, and lines, of an event."""
_AT_ONCE = 20
"""Events after which others have their turn on the event loop."""
_WITH_PROBABILITIES = re.compile(rb'"logprobs":\s*true')
_END = re.compile(rb"\r?\n\r?\n|\r\r")
ASKING = {"accept-encoding": "gzip"}
"""The header by which a client asks for what is unpacked here."""


class TooLarge(ValueError):
    """A reply has more bytes than are read, or is packed in a way that was not asked for."""


class _Unpacked(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, stream: Any, most: int, packed: bool) -> None:
        self._stream, self._most, self._packed = stream, most, packed
        self.signs: int | None = MOST_SIGNS
        self.in_events = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.in_events:
            async for event in _events(self._parts()):
                yield event
            return
        left = self.signs
        async for part in self._parts():
            if left is not None:
                left -= sum(map(part.count, SIGNS))
                if left < 0:
                    raise TooLarge(f"the reply has more than {self.signs:,} commas and brackets")
            yield part

    async def _parts(self) -> AsyncIterator[bytes]:
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if self._packed else None  # with the head of either form
        left = self._most
        async for part in self._stream:
            try:
                data = unpack.decompress(part, left + 1) if unpack else part
            except zlib.error as error:
                raise TooLarge(f"the reply cannot be unpacked: {error}") from error
            left -= len(data)
            if left < 0:
                raise TooLarge(f"the reply has more than {self._most:,} bytes")
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a stream event by event, none of which is too large to be read at once."""
    begun = bytearray()
    looked = 0
    count = 0
    async for part in parts:
        begun += part
        while end := _END.search(begun, looked):
            yield _checked(bytes(begun[: end.end()]))
            del begun[: end.end()]
            looked = 0
            count += 1
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)
        looked = max(len(begun) - 3, 0)
        if len(begun) > MOST_OF_EVENT:
            break
    if begun:
        yield _checked(bytes(begun))


def _checked(event: bytes) -> bytes:
    if len(event) > MOST_OF_EVENT:
        raise TooLarge(f"an event of the reply has more than {MOST_OF_EVENT:,} bytes")
    if len(event) > MOST_SIGNS_OF_EVENT:
        lines = event.count(b"\n") + event.count(b"\r")
        if lines + signs_outside_texts(event, MOST_SIGNS_OF_EVENT) > MOST_SIGNS_OF_EVENT:
            raise TooLarge(f"an event of the reply has more than {MOST_SIGNS_OF_EVENT:,} lines, commas and brackets")
    return event


def read_in_events(response: Any) -> None:
    """Let a reply that is about to be read as a stream of events come in such, whatever kind its server names."""
    stream = getattr(response, "stream", None)
    if isinstance(stream, _Unpacked):
        stream.in_events = True


async def bounded(response: httpx.Response | httpx2.Response) -> None:
    """Let no more be read of a reply than it may have: `event_hooks={"response": [bounded]}` of a client of httpx.

    Raises:
        TooLarge: if the reply is packed in a way that was not asked for; reading it raises this if it has too much.
    """
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate", ""):
        raise TooLarge(f"the reply is packed as {encoding[:50]}, and was asked for as gzip")
    has_events = response.headers.get("content-type", "").startswith("text/event-stream")
    has_vectors = response.request.url.path.endswith("/embeddings")
    most = MOST_IN_PARTS if has_events or has_vectors else MOST
    response.stream = stream = _Unpacked(response.stream, most, encoding in ("gzip", "deflate"))
    stream.in_events = has_events
    if has_vectors:
        stream.signs = None
    elif not has_events and _WITH_PROBABILITIES.search(_sent(response.request)):
        stream.signs = MOST_WITH_PROBABILITIES


def _sent(request: httpx.Request | httpx2.Request) -> bytes:
    """Return the body of a request; nothing where a redirect sends it on as a stream."""
    try:
        return request.content
    except (httpx.RequestNotRead, httpx2.RequestNotRead):
        return b""
