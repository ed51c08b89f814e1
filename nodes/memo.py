"""Doing a thing once: what was worked out is kept, and who asks meanwhile waits for it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from reflective_agents.state.errors import LimitReached, ModelFailed

T = TypeVar("T")


class Memo:
    """Results by key. A thing that fails is not kept: the next one who asks tries again."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._flight: dict[Hashable, asyncio.Future[None]] = {}

    async def once(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return the result under a key, and whether it was there already or was made by another caller."""
        if key not in self._known:
            while (other := self._flight.get(key)) is not None:
                await asyncio.wait([other])
            if key not in self._known:
                return await self._make(key, make), False
        return self._known[key], True

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        done = self._flight[key] = asyncio.get_running_loop().create_future()
        try:
            result = await make()
            self._known[key] = result
            return result
        finally:
            del self._flight[key]
            done.set_result(None)


@lru_cache(maxsize=64)
def memo_of(run_id: str) -> Memo:
    """Return the memo of a run in this process; a run that is resumed elsewhere begins with an empty one."""
    return Memo()


async def each_to_its_end(coroutines: Sequence[Awaitable[None]]) -> None:
    """Run several coroutines at once. One that meets a limit, or a model that fails, leaves the others alone; the first
    such exception is raised when all have ended."""

    async def to_its_end(work: Awaitable[None]) -> LimitReached | ModelFailed | None:
        try:
            await work
        except (LimitReached, ModelFailed) as stop:
            return stop
        return None

    try:
        stops = await at_once([to_its_end(work) for work in coroutines])
    finally:
        for work in coroutines:
            if isinstance(work, Coroutine):
                work.close()  # or one that was cancelled before it began would be reported as never awaited
    for stop in stops:
        if stop is not None:
            raise stop


async def at_once(coroutines: Sequence[Awaitable[T]]) -> list[T]:
    """Run several coroutines at once and return their results.

    If one raises, the others are cancelled and have ended before its exception is raised. It is raised bare:
    `interrupt()` is an exception, and an exception group would hide it.
    """
    if len(coroutines) == 1:
        return [await coroutines[0]]
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
