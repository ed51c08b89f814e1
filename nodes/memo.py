"""Doing a thing once: what was worked out is kept, and who asks meanwhile waits for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

from reflective_agents.state.errors import LimitReached, ModelFailed

T = TypeVar("T")


class Memo:
    """Results by key. A thing that fails is not kept: the next one who asks tries again."""

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}
        self._in_flight: dict[Hashable, asyncio.Future[None]] = {}

    async def once(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return the result under a key, and whether it was there already or was made by another caller."""
        # Again and again: the one that was waited for may have failed, and another one be at it by now.
        while (under_way := self._in_flight.get(key)) is not None:
            await asyncio.wait([under_way])
        if key in self._results:
            return self._results[key], True
        done = self._in_flight[key] = asyncio.get_running_loop().create_future()
        try:
            result = self._results[key] = await make()
            return result, False
        finally:
            del self._in_flight[key]
            done.set_result(None)


@lru_cache(maxsize=64)
def memo_of(run_id: str) -> Memo:
    """Return the memo of a run in this process; a run that is resumed elsewhere begins with an empty one."""
    return Memo()


async def each_to_its_end(coroutines: Sequence[Awaitable[None]]) -> None:
    """Run several coroutines at once. One that meets a limit, or a model that fails, leaves the others alone; the first
    such exception is raised when all have ended."""
    if len(coroutines) == 1:
        return await coroutines[0]
    async with _tasks(coroutines) as tasks:
        # `gather` raises with the first that stops: it is set aside, and the others are waited for anew. Any
        # other exception leaves the loop, and ends them.
        while unstopped := [task for task in tasks if not _was_stopped(task)]:
            with suppress(LimitReached, ModelFailed):
                await asyncio.gather(*unstopped)
                break
    for task in tasks:
        task.result()


def _was_stopped(task: asyncio.Future[None]) -> bool:
    return task.done() and isinstance(task.exception(), LimitReached | ModelFailed)


async def at_once(coroutines: Sequence[Awaitable[T]]) -> list[T]:
    """Run several coroutines at once and return their results.

    If one raises, the others are cancelled and have ended before its exception is raised. It is raised bare:
    `interrupt()` is an exception, and an exception group would hide it.
    """
    if len(coroutines) == 1:
        return [await coroutines[0]]
    async with _tasks(coroutines) as tasks:
        return await asyncio.gather(*tasks)


@asynccontextmanager
async def _tasks(coroutines: Sequence[Awaitable[T]]) -> AsyncIterator[Sequence[asyncio.Future[T]]]:
    """Run coroutines as tasks, all of which have ended after the body."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
