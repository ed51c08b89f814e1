"""A proxy that loses what passes through it while it is cut: as a network does, without closing any connection."""

import asyncio
from pathlib import Path
from typing import Self

Address = tuple[str, int] | Path
"""Host and port, or a socket of Unix."""


class Proxy:
    """Stands before a server, as an `async with` block.

    What is sent while it is cut arrives afterwards, since TCP sends it again. New connections wait meanwhile.

    Args:
        server: Where it passes on to.
        listen: Where it listens.
    """

    def __init__(self, server: Address, listen: Address = ("127.0.0.1", 0)) -> None:
        self._server, self._listen = server, listen
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        if isinstance(self._listen, Path):
            self._listener: asyncio.Server = await asyncio.start_unix_server(self._connected, self._listen)
        else:
            self._listener = await asyncio.start_server(self._connected, *self._listen)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close everything."""
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.sockets[0].getsockname()[1])

    async def cut(self, seconds: float) -> None:
        """Let nothing through for so many seconds."""
        self._open.clear()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._open.set()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._open.wait()
            there, back = await self._connect()
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, back))
                both.create_task(self._pass_on(there, writer))
        except* OSError:  # one end has gone
            pass
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._server, Path):
            return await asyncio.open_unix_connection(self._server)
        return await asyncio.open_connection(*self._server)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
            await self._open.wait()
        finally:
            writer.close()
