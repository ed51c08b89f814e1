"""A clock that stands still while anything happens, and jumps to the next moment at which something will.

    result, seconds = virtually(graph.ainvoke(...))

So it shows the longest chain of calls that wait for each other, whatever else the machine has to do. What runs in
threads takes no time on it.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumps(selectors.DefaultSelector):
    """Instead of waiting for a time to pass, it says that it has."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(None if timeout is None else 0)
        if not events and timeout is not None:
            self.now += max(timeout, 0)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with such a clock, which begins at 0."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._jumps = _Jumps()
        super().__init__(self._jumps)

    def time(self) -> float:
        """Seconds since the beginning."""
        return self._jumps.now


def virtually(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Run a coroutine in a loop of its own, and return its result with the seconds that it took on such a clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(work)
        return result, runner.get_loop().time()
