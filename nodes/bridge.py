"""Lets graphs of asynchronous nodes be called from synchronous code: `invoke` and `stream` work wherever `ainvoke`
does."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig, RunnableLambda, ensure_config
from langchain_core.runnables.config import set_config_context

from reflective_agents.models.event_loops import background_loop, is_background, running_loop
from reflective_agents.nodes.savers import awaitable

S = TypeVar("S")
T = TypeVar("T")
_serving: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("serving", default=None)
"""The background loop that waits for what runs here; it or all its threads may be blocked until that has ended."""


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is already running in this thread."""
    running = running_loop()
    loop = background_loop(running if is_background(running) else _serving.get())
    # The coroutine runs in a copy of this context, and so knows the loop that waits for it.
    outer = _serving.set(loop)
    try:
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    finally:
        _serving.reset(outer)
    try:
        return future.result()
    finally:
        # After a Ctrl-C nobody waits for the run any more.
        future.cancel()


class SyncAdapter(RunnableLambda[S, T]):
    """An asynchronous function as a node or a router, for synchronous callers too.

    LangGraph traces nodes itself. So this calls the function as it is, without a run and a task of its own.
    """

    def __init__(self, function: Callable[[S], Coroutine[Any, Any, T]]) -> None:
        """Keep the name and the types of the function."""

        @wraps(function)
        def blocking(argument: S) -> T:
            return wait_for(function(argument))

        super().__init__(blocking, afunc=function)
        self._function = function

    def invoke(self, input: S, config: RunnableConfig | None = None, **kwargs: Any) -> T:
        """Call the function, and wait for it."""
        with set_config_context(awaitable(ensure_config(config))) as context:
            return context.run(lambda: wait_for(self._function(input)))

    # Not `async`, which would put one more function between a graph and what it calls.
    def ainvoke(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, input: S, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Coroutine[Any, Any, T]:
        """Call the function."""
        return self._function(input)
