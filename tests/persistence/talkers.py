"""Conversations in processes that are killed without warning: at a checkpoint, or at a write to the store."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from reflective_agents.graphs.memory import builder
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.persistence import victim
from tests.persistence.runs import Graph, open_saver

FIRST, SECOND = "My sister lives in Turin.", "Where does my sister live?"


class Death(NamedTuple):
    """When to die: right after the checkpoint of a super-step, or after a write to the store (from 1)."""

    step: int | None = None
    write: int | None = None


def reply(request: Request) -> Reply:
    """Keep what is said as a fact, and draw insights from the first memories shown."""
    if request.schema == "Facts":
        fact = {"about": "the user", "statement": FIRST, "importance": 6}
        return {"facts": [fact] if f"\n{FIRST}\n" in request.last.partition("<said")[2] else []}
    if request.schema == "Questions":
        return {"questions": ["Who?", "Where?", "When?"]}
    if request.schema == "Insights":
        about = request.last.rpartition("<question>\n")[2].partition("\n")[0]
        drawn = {"evidence": [1, 2], "importance": 7}
        return {"insights": [{"insight": f"Insight {n}: {about}", **drawn} for n in range(5)]}
    return "In Turin [m1]." if "[m1]" in request.text else "I see."


def settings(user: str, reflect_at: float = 1) -> MemoryContext:
    """Settings under which every turn ends with a reflection, unless it takes more."""
    return MemoryContext(model=FakeChatModel(reply=reply), user=user, embeddings="lexical", reflect_at=reflect_at)


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


@asynccontextmanager
async def open_graph(database: str, death: Death | None = None) -> AsyncIterator[tuple[Graph, Any]]:
    """The graph with its checkpoints and its store in a database, and the store; both know when to die."""
    saver_kinds, store_kind = mortal(death or Death(), database.endswith(".sqlite"))
    async with open_saver(database, *saver_kinds) as saver:
        store_database = database.replace(".sqlite", ".store.sqlite")
        async with store_kind.from_conn_string(store_database) as store:
            await store.setup()
            yield builder.compile(checkpointer=saver, store=store), store


def mortal(death: Death, sqlite: bool) -> tuple[tuple[Any, Any], Any]:
    """Savers and a store that kill their process at the moment of death."""
    writes = 0

    def die(now: bool) -> None:
        if now:
            os.kill(os.getpid(), signal.SIGKILL)

    class Saver:
        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            saved = await super().aput(config, checkpoint, metadata, new_versions)  # type: ignore[misc]
            die(metadata["step"] == death.step)
            return saved

    class Store:
        async def abatch(self, ops: Iterable[Op]) -> list[Result]:
            nonlocal writes
            ops = list(ops)
            writes += any(isinstance(op, PutOp) for op in ops)
            done: list[Result] = await super().abatch(ops)  # type: ignore[misc]
            die(writes == death.write)
            return done

    store: Any = type("Mortal", (Store, AsyncSqliteStore if sqlite else AsyncPostgresStore), {})
    savers = type("Mortal", (Saver, AsyncSqliteSaver), {}), type("Mortal", (Saver, AsyncPostgresSaver), {})
    return savers, store


def talk_until(death: Death, user: str, database: str) -> None:
    """Let a process ask the second question of a user until it dies."""
    process = victim.processes.Process(target=_talk, args=(death, user, database))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, death


def _talk(death: Death, user: str, database: str) -> None:
    asyncio.run(_ask(death, user, database))


async def _ask(death: Death, user: str, database: str) -> None:
    async with open_graph(database, death) as (graph, _):
        given = {"messages": [("user", SECOND)]}
        await graph.ainvoke(given, thread(user), context=settings(user), durability="sync")
