"""The stream of a run, which may repeat parts, and fall silent."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

from langgraph_sdk import schema as sdk

from reflective_agents.state.json_types import JsonObject

T = TypeVar("T")


async def until_silence(parts: AsyncIterator[T], silence: float) -> AsyncIterator[T]:
    """Yield the parts of a stream, until it ends or nothing comes for so many seconds.

    A run that was stopped may have told nobody that it is over, and Aegra would wait for that for ever.
    """
    while True:
        try:
            async with asyncio.timeout(silence):
                part = await anext(parts)
        except (StopAsyncIteration, TimeoutError):
            return
        yield part


class StreamPosition:
    """How far a stream has come, by which repeated parts are left out.

    `langgraph dev` queues what happens while it replays the past, and replays that, too, so its stream repeats some
    parts. Their ids are milliseconds, which several parts may share; no two parts of a run are equal, since events are
    numbered and pieces of an answer have offsets.
    """

    def __init__(self) -> None:
        self._id = "-1"
        self._newest = 0
        """The newest millisecond, where ids are milliseconds."""
        self._parts: list[JsonObject] = []
        """The data of the parts of that millisecond."""

    def last_event_id(self) -> str:
        """Return the id after which to resume the stream: all of the newest millisecond is requested again."""
        return f"{self._newest - 1}-0" if self._newest else self._id

    def is_repeat(self, part: sdk.StreamPart) -> bool:
        """Record a part, and tell whether it came before."""
        self._id = part.id or self._id
        millisecond = self._id.removesuffix("-0")
        if not millisecond.isdecimal():
            return False
        now = int(millisecond)
        if now < self._newest or (now == self._newest and part.data in self._parts):
            return True
        self._parts = [*self._parts, part.data] if now == self._newest else [part.data]
        self._newest = now
        return False
