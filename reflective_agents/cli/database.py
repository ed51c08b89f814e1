"""What the command remembers lies in SQLite files, or in Postgres if DATABASE_URL is set, through the same code."""

import asyncio
import errno
import importlib
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore

from reflective_agents.state.context import Context
from reflective_agents.state.errors import NoDatabase, reason_of
from reflective_agents.state.extras import need

if TYPE_CHECKING:
    from langgraph.store.sqlite.aio import AsyncSqliteStore

CONNECT_SECONDS = 10
LOCKED_SECONDS = 3


@asynccontextmanager
async def open_database(package: str, kind: str, file: str) -> AsyncIterator[Any]:
    """Open one of LangGraph's savers or stores for the duration of the body.

    Args:
        package: `langgraph.checkpoint` or `langgraph.store`, which hold one class for each database.
        kind: What their names end with: `Saver` or `Store`.
        file: Name of the SQLite file.

    Raises:
        NoDatabase: if the database cannot be reached or opened, or is lost on the way.
    """
    url = os.environ.get("DATABASE_URL")
    async with _postgres(url, package, kind) if url else _sqlite(file, package, kind) as opened:
        if kind == "Saver":  # as it comes, it makes whatever object a checkpoint names, and so calls any function
            opened.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        yield opened


@asynccontextmanager
async def _sqlite(name: str, package: str, kind: str) -> AsyncIterator[Any]:
    file = await asyncio.to_thread(_made_home) / name
    factory = getattr(importlib.import_module(f"{package}.sqlite.aio"), f"AsyncSqlite{kind}")
    await asyncio.to_thread(_claim, file)
    try:
        async with factory.from_conn_string(str(file)) as opened:
            await opened.setup()
            if kind == "Store":
                await write_ahead(opened)
            yield opened
    except sqlite3.Error as error:
        raise NoDatabase(f"{file} cannot be used ({reason_of(error)}): {_advice(error)}") from error


def _advice(error: sqlite3.Error | OSError) -> str:
    """Say what helps. Another folder would not have the threads of this one, so it comes last."""
    if "locked" in str(error):
        return "wait for the process that uses it"
    if "disk is full" in str(error) or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return "make room on its disk"
    return "set REFLECT_HOME to another folder"


def _claim(file: Path) -> None:
    """Make a file that only its owner can read, and wait for others to end their writing, but not for long.

    Raises:
        NoDatabase: if it cannot be written.
    """
    try:
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        if sys.platform != "win32" and file.stat().st_uid == os.getuid():
            file.chmod(0o600)  # conversations are private
        with closing(sqlite3.connect(file, timeout=LOCKED_SECONDS)) as connection:
            # Tells whether the file can be written, and whether somebody else is writing.
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
            _log_ahead(connection)
    except (sqlite3.Error, OSError) as error:
        raise NoDatabase(f"{file} cannot be used ({reason_of(error)}): {_advice(error)}") from error


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Let writes go to a log, as LangGraph does anyway: of several who do so at once in a new file, SQLite refuses all
    but one, however long they would wait."""
    end = time.monotonic() + LOCKED_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


async def write_ahead(store: "AsyncSqliteStore") -> None:
    """Prepare a store in a SQLite file for many small writes: they go to a log that is synchronised now and then, so
    that a power cut costs the last of them at most."""
    await store.conn.execute("PRAGMA journal_mode=WAL")
    await store.conn.execute("PRAGMA synchronous=NORMAL")


def home_folder() -> Path:
    """Return the folder where the command keeps its data; it need not exist yet."""
    return Path(os.environ.get("REFLECT_HOME") or platformdirs.user_data_dir("reflective-agents"))


def _made_home() -> Path:
    home = home_folder()
    try:
        home = home.expanduser()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise NoDatabase(
            f"the folder {home} cannot be made ({reason_of(error)}): set REFLECT_HOME to another one"
        ) from error
    return home


@asynccontextmanager
async def _postgres(url: str, package: str, kind: str) -> AsyncIterator[Any]:
    need("psycopg", "langgraph.checkpoint.postgres", extra="postgres", purpose="DATABASE_URL")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    factory = getattr(importlib.import_module(f"{package}.postgres.aio"), f"AsyncPostgres{kind}")
    try:
        # What the user's address says about time goes before ours.
        address = make_conninfo("", **{"connect_timeout": CONNECT_SECONDS, **conninfo_to_dict(url)})
    except psycopg.ProgrammingError as error:  # its text would show the password
        advice = "write postgresql://user:password@host:5432/name, or unset it to use SQLite"
        raise NoDatabase(f"DATABASE_URL is not the address of a PostgreSQL database: {advice}") from error
    try:
        async with factory.from_conn_string(address) as opened:
            await opened.setup()
            yield opened
    except psycopg.Error as error:
        advice = "start it, correct DATABASE_URL, or unset it to use SQLite"
        raise NoDatabase(f"the database of DATABASE_URL cannot be used ({reason_of(error)}): {advice}") from error


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
