"""How much of a reply over HTTP is read: a server may send without end, or pack gigabytes into a megabyte.

Clients unpack a reply as a whole, and in steps without a bound, so it is unpacked here.
"""

import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2

MOST = 8_000_000
"""Bytes of a reply, unpacked."""
MOST_IN_PARTS = 32_000_000
"""Bytes of a stream of events, which are read one by one, and of vectors: 256 of 4,096 numbers in words."""
ASKING = {"accept-encoding": "gzip"}
"""The header by which a client asks for what is unpacked here."""


class TooLarge(ValueError):
    """A reply has more bytes than are read, or is packed in a way that was not asked for."""


class _Unpacked(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, stream: Any, most: int, packed: bool) -> None:
        self._stream, self._most, self._packed = stream, most, packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
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


async def bounded(response: httpx.Response | httpx2.Response) -> None:
    """Let no more be read of a reply than it may have: `event_hooks={"response": [bounded]}` of a client of httpx.

    Raises:
        TooLarge: if the reply is packed in a way that was not asked for; reading it raises this if it has too much.
    """
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate", ""):
        raise TooLarge(f"the reply is packed as {encoding[:50]}, and was asked for as gzip")
    is_read_in_parts = response.headers.get("content-type", "").startswith("text/event-stream")
    most = MOST_IN_PARTS if is_read_in_parts or response.request.url.path.endswith("/embeddings") else MOST
    response.stream = _Unpacked(response.stream, most, encoding in ("gzip", "deflate"))
