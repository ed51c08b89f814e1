"""Where reflections are kept for later runs: beside the threads, and only if the settings ask for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.store.base import BaseStore

from cli.database import open_database
from state.context import Context


@asynccontextmanager
async def open_store(context: Context) -> AsyncIterator[BaseStore | None]:
    """Open the store for the duration of the body; None if the settings keep no experience.

    Raises:
        NoDatabase: if it cannot be reached or opened.
    """
    if getattr(context, "experience", None) is None:
        yield None
        return
    async with open_database("langgraph.store", "Store", "lessons.sqlite") as store:
        yield store
