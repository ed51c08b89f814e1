"""Ctrl-C, SIGTERM and a terminal that hangs up end a run in the same way, however often they come."""

import asyncio
import signal
from contextlib import suppress


def cancel_on_signals() -> None:
    """Cancel the current task at each such signal from now on, unless it is ignored, as `nohup` wants it."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError, AttributeError):  # on Windows
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C from now on: the process ends anyway, and its last line says how to go on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
