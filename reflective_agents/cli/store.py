"""Where memories and lessons are kept: beside the threads, and only if the settings ask for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.store.base import BaseStore

from reflective_agents.cli.database import open_database
from reflective_agents.state.context import Context


@asynccontextmanager
async def open_store(context: Context | None = None) -> AsyncIterator[BaseStore | None]:
    """Open the store for the duration of the body; None if a run with these settings keeps nothing in it.

    Raises:
        NoDatabase: if it cannot be reached or opened.
    """
    if context is not None and not context.remembers:
        yield None
        return
    async with open_database("langgraph.store", "Store", "memory.sqlite") as store:
        yield store
