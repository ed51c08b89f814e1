"""Lets graphs of asynchronous nodes be called from synchronous code: `invoke` and `stream` work wherever `ainvoke`
does."""

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from reflective_agents.state.forks import after_fork

T = TypeVar("T")


@cache
def _background_loop() -> asyncio.AbstractEventLoop:
    """Start the one event loop of the process that serves synchronous callers, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="reflect-loop", daemon=True).start()
    return loop


after_fork(_background_loop.cache_clear)


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is already running in this thread."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _background_loop())
    try:
        return future.result()
    finally:
        future.cancel()
