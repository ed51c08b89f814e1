"""A clock that stands still while anything happens, and jumps to the next moment at which something will.

    result, seconds = virtually(graph.ainvoke(...))

So it shows the longest chain of calls that wait for each other, whatever else the machine has to do. What runs in
threads takes no time on it.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Jumps(selectors.DefaultSelector):
    """Instead of waiting for a time to pass, it says that it has."""

    now = 0.0
    threads = 0
    """How many threads work for the loop: until they are done, no time passes."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        # While a thread works, it really waits, for that thread alone: time must not jump over its result.
        events = super().select(None if self.threads else 0)
        if not events:
            self.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with such a clock, which begins at 0."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._jumps = _Jumps()
        super().__init__(self._jumps)

    def time(self) -> float:
        """Return the seconds since the beginning."""
        return self._jumps.now

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Call a function in a thread, and let the clock stand still meanwhile."""
        work = super().run_in_executor(executor, func, *args)
        self._jumps.threads += 1

        def worked(_: asyncio.Future[T]) -> None:
            self._jumps.threads -= 1

        work.add_done_callback(worked)
        return work


def virtually(work: Coroutine[None, None, T]) -> tuple[T, float]:
    """Run a coroutine in a loop of its own, and return its result with the seconds that it took on such a clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(work)
        return result, runner.get_loop().time()
