"""Reports what holds an event loop: whatever works on it without a pause lets everybody else wait.

A thread sends the loop a beat, and looks at what the loop's own thread is doing if none comes back in time. Servers
have such a guard (`reflect.loop` in the log); nobody else does.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Self

from reflective_agents.telemetry.log import LOGGERS, Event

LONGEST = 0.1
"""Seconds for which a loop may stand still."""
FRAMES = 12
"""Frames that a report names, the innermost first."""
_LOOK = 1.0


class Held(NamedTuple):
    """That a loop stood still: for how many seconds, without those in which other programs had the processor, and what
    it was doing, as files, lines and functions. No value is in it."""

    seconds: float
    stack: str


class LoopGuard:
    """Watches the running event loop for the duration of an `async with`.

    Args:
        report: Is called for each time that the loop stood still, in another thread.
        longest: Seconds for which it may, above 0.
        every: Seconds between two beats, above 0.
    """

    def __init__(self, report: Callable[[Held], None], *, longest: float = LONGEST, every: float = 0.05) -> None:
        self._report, self._longest, self._every = report, longest, every
        self._ended = threading.Event()

    async def __aenter__(self) -> Self:
        """Begin to watch."""
        loop, thread = asyncio.get_running_loop(), threading.current_thread()
        self._watch = threading.Thread(target=self._run, args=(loop, thread), name="loop-guard", daemon=True)
        self._watch.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Watch no longer; what holds the loop just now is reported."""
        self._ended.set()
        await asyncio.to_thread(self._watch.join)

    def _run(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        own, all_threads = Path(f"/proc/self/task/{thread.native_id}"), Path("/proc/self/task")
        while not self._ended.wait(self._every):
            begun, times, beat = time.monotonic(), _times(own), threading.Event()
            try:
                loop.call_soon_threadsafe(beat.set)
            except RuntimeError:  # it is closed
                return
            if beat.wait(self._longest / 5):
                continue
            others = {other: _times(other) for other in all_threads.glob("*") if other != own}
            if beat.wait(self._longest * 4 / 5):
                continue
            stack = _stack(sys._current_frames().get(thread.ident or 0))
            while not beat.wait(_LOOK):
                if loop.is_closed():
                    return
            since, now = time.monotonic() - begun, _times(own)
            # Another thread may have had the interpreter, and waited for a processor.
            waits = [_times(other).waited - before.waited for other, before in others.items()]
            elsewhere = max(waits, default=0.0)
            seconds = max(now.ran - times.ran, since - (now.waited - times.waited) - max(elsewhere, 0))
            if seconds > self._longest:
                self._report(Held(round(seconds, 3), stack))


def log_held(held: Held) -> None:
    """Write a line of the logger `reflect.loop`."""
    LOGGERS["loop"].warning(Event(event="held", seconds=held.seconds, stack=held.stack))


class _Times(NamedTuple):
    """For how many seconds a thread ran, and was ready to run while others did; 0 where nothing counts them."""

    ran: float
    waited: float


def _times(thread: Path) -> _Times:
    try:
        ran, waited, _ = (thread / "schedstat").read_text().split()
    except (OSError, ValueError):  # not on Linux, or the thread has ended
        return _Times(0, 0)
    return _Times(int(ran) / 1e9, int(waited) / 1e9)


def _stack(frame: FrameType | None) -> str:
    lines = list[str]()
    while frame and len(lines) < FRAMES:
        code = frame.f_code
        lines.append(f"{'/'.join(Path(code.co_filename).parts[-2:])}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(lines)
