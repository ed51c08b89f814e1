"""Processes that use one agent's memory."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.store.base import BaseStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from reflective_agents.memory.stream import MemoryStream
from reflective_agents.state.memories import Memory, new_memory

OWNER = "anna.of.the.café"
SHARED = 5
"""Memories that every process adds."""
OWN = 12
"""Memories that only one process adds."""


@asynccontextmanager
async def open_store(database: str) -> AsyncIterator[BaseStore]:
    """The store in a SQLite file or a Postgres database, set up."""
    kind = AsyncSqliteStore if database.endswith(".sqlite") else AsyncPostgresStore
    async with kind.from_conn_string(database) as store:
        await store.setup()
        yield store


def observation(key: str, created: float) -> Memory:
    return new_memory(f"memory {key}", created=created, importance=2, key=key)


async def live(name: str, database: str, kill_at: int | None = None) -> None:
    """Add what every process adds and what only this one does, one by one, and retrieve after each."""
    async with open_store(database) as store:
        stream = await MemoryStream.open(store, OWNER, "lexical")
        for number in range(SHARED + OWN):
            if number == kill_at:
                asyncio.get_running_loop().call_later(0.001, os.kill, os.getpid(), signal.SIGKILL)
            key = f"{number}" if number < SHARED else f"{name} {number}"
            await stream.add([observation(key, float(number))])
            await stream.retrieve("memory", k=3, now=1000.0 + number)
        insight = new_memory(
            f"{name} thinks",
            created=50.0,
            kind="reflection",
            evidence=[observation(f"{name} {SHARED}", 0)["id"]],
            key=f"{name} insight",
        )
        await stream.add([insight], reflected=(await stream.pending()).latest)
