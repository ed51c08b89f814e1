"""Where reflections are kept for later runs: beside the threads, in SQLite or Postgres, if the settings ask for it."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.store.base import BaseStore

from cli.threads import home_file
from state.context import Context
from state.errors import NoDatabase


@asynccontextmanager
async def open_store(context: Context) -> AsyncIterator[BaseStore | None]:
    """Open the store for the duration of the body; None if the settings keep no experience.

    Raises:
        NoDatabase: if it cannot be reached or opened.
    """
    if getattr(context, "experience", None) is None:
        yield None
    elif url := os.environ.get("DATABASE_URL"):
        async with _postgres(url) as store:
            yield store
    else:
        async with _sqlite() as store:
            yield store


@asynccontextmanager
async def _sqlite() -> AsyncIterator[BaseStore]:
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    file = await home_file("lessons.sqlite")
    try:
        async with AsyncSqliteStore.from_conn_string(str(file)) as store:
            await store.setup()
            yield store
    except sqlite3.Error as error:
        raise NoDatabase(f"{file} cannot be used ({error}): set REFLECT_HOME to another folder") from error


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[BaseStore]:
    import psycopg
    from langgraph.store.postgres.aio import AsyncPostgresStore

    try:
        async with AsyncPostgresStore.from_conn_string(url) as store:
            await store.setup()
            yield store
    except psycopg.Error as error:
        advice = "start it, correct DATABASE_URL, or unset it to use SQLite"
        raise NoDatabase(f"the database of DATABASE_URL cannot be used ({error}): {advice}") from error
