"""Ctrl-C, SIGTERM and a terminal that hangs up end a run in the same way, however often they come."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

from reflective_agents.cli.output import stderr

PATIENCE = 5.0
"""Seconds in which what was cancelled may close its files and connections before a signal cancels it again."""
ENDINGS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
T = TypeVar("T")


def run_until_signal(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function like `asyncio.run`, but let each of these signals cancel it.

    A signal that is ignored stays so, as `nohup` wants it. Once one has come all are ignored: the process ends anyway,
    and its last line says how to go on.

    Returns:
        What the coroutine returns.

    Raises:
        KeyboardInterrupt: if a signal came, even if the coroutine had ended by then.
    """
    stop = _Stop()
    handlers = {number: signal.getsignal(number) for number in ENDINGS}
    before = {number: handler for number, handler in handlers.items() if handler != signal.SIG_IGN}

    async def cancellable() -> T:
        stop.task = asyncio.current_task()
        if stop.came:
            raise asyncio.CancelledError
        return await main()

    try:
        for number in before:
            signal.signal(number, stop)  # asyncio's own handlers are there neither before its loop nor after it
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if stop.came else handler)
        if stop.came:
            raise KeyboardInterrupt


def ask(question: str) -> str:
    """Ask the person at the terminal, like `input`, which does not see a Ctrl-C that comes just before it waits.

    Returns:
        The line that they have typed.

    Raises:
        EOFError: if they close the input.
        KeyboardInterrupt: if they, or a signal, interrupt this.
    """

    async def asking() -> None:
        has_input = asyncio.Event()
        stderr().print(question, end="")
        asyncio.get_running_loop().add_reader(sys.stdin, has_input.set)
        await has_input.wait()

    if sys.platform == "win32":  # whose loop has no such readers
        return stderr().input(question)
    run_until_signal(asking)
    return input()


class _Stop:
    """A handler of signals that cancels a task, and leaves it time to close what it uses before it does so again."""

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.came = False
        self._not_before = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if self.task is None:
            return
        loop = self.task.get_loop()
        if loop.is_closed() or loop.time() < self._not_before:
            return
        self._not_before = loop.time() + PATIENCE
        loop.call_soon_threadsafe(self.task.cancel)
