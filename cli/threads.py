"""Where conversations are kept: in an SQLite file, or in Postgres if DATABASE_URL is set."""

import asyncio
import json
import os
import secrets
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import platformdirs
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from state.errors import Misuse, NoDatabase, WrongThread

Saver = BaseCheckpointSaver[Any]
Graph = CompiledStateGraph[Any, Any, Any, Any]
ThreadStatus = Literal["waiting for a person", "unfinished", "solved", "limit_reached", "exhausted", "failed", "empty"]
CONNECT_SECONDS = 10


@asynccontextmanager
async def open_saver() -> AsyncIterator[Saver]:
    """Open the database for the duration of the body.

    Raises:
        NoDatabase: if it cannot be reached or opened, or is lost on the way.
    """
    url = os.environ.get("DATABASE_URL")
    async with _postgres(url) if url else _sqlite() as saver:
        yield saver


@asynccontextmanager
async def _sqlite() -> AsyncIterator[Saver]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    file = await home_file("threads.sqlite")
    try:
        async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
            await saver.setup()
            yield saver
    except sqlite3.Error as error:
        raise NoDatabase(f"{file} cannot be used ({error}): set REFLECT_HOME to another folder") from error


async def home_file(name: str) -> Path:
    """The place of a file in the folder where the command keeps what it has to remember.

    Raises:
        NoDatabase: if there is no such folder and it cannot be made.
    """
    return await asyncio.to_thread(_home) / name


def _home() -> Path:
    home = Path(os.environ.get("REFLECT_HOME") or platformdirs.user_data_dir("reflective-agents"))
    try:
        home = home.expanduser()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise NoDatabase(f"the folder {home} cannot be made ({error}): set REFLECT_HOME to another one") from error
    return home


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[Saver]:
    import psycopg
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        given: dict[str, Any] = conninfo_to_dict(url)
        address = make_conninfo(**{"connect_timeout": CONNECT_SECONDS, **given})
    except psycopg.ProgrammingError as error:  # its text would show the password
        advice = "write postgresql://user:password@host:5432/name, or unset it to use SQLite"
        raise NoDatabase(f"DATABASE_URL is no address of a PostgreSQL database: {advice}") from error
    try:
        async with AsyncPostgresSaver.from_conn_string(address) as saver:
            await saver.setup()
            yield saver
    except psycopg.Error as error:
        advice = "start it, correct DATABASE_URL, or unset it to use SQLite"
        raise NoDatabase(f"the database of DATABASE_URL cannot be used ({error}): {advice}") from error


def new_name(strategy: str) -> str:
    """A readable name for a new thread, such as `lats-20261120-153012-a1b2`."""
    return f"{strategy}-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def config_of(thread: str, strategy: str = "", settings: Mapping[str, Any] | None = None) -> RunnableConfig:
    """The configuration of a run on a thread. The settings given are kept with the checkpoints, for a later resume."""
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    if strategy:
        config["metadata"] = {"strategy": strategy, "settings": json.dumps(settings or {})}
    return config


def config_to_resume(state: StateSnapshot, strategy: str, settings: Mapping[str, Any]) -> RunnableConfig:
    """The configuration that goes on from a state.

    A step that was cancelled while its writes were being noted has noted only some of them. LangGraph would take it for
    finished and lose the way to the next step, so such a step is run again: that is what naming the checkpoint does.
    """
    config = config_of(state.config["configurable"]["thread_id"], strategy, settings)
    if any(task.error for task in state.tasks):
        config["configurable"] = {**state.config["configurable"]}
    return config


def settings_kept(state: StateSnapshot) -> dict[str, Any]:
    """The settings that were given to the run that a thread's last checkpoint belongs to."""
    metadata: dict[str, Any] = {**(state.metadata or {})}
    kept: dict[str, Any] = json.loads(metadata.get("settings", "null")) or state.values.get("settings") or {}
    return kept


async def read_thread(graph: Graph, saver: Saver, thread: str) -> StateSnapshot:
    """The last state of a thread; without values if there is no such thread.

    Raises:
        WrongThread: if it belongs to another strategy than the graph.
    """
    config = config_of(thread)
    saved = await saver.aget_tuple(config)
    if saved:
        kept: Mapping[str, Any] = {**saved.metadata}
        owner = saved.checkpoint["channel_values"].get("strategy") or kept.get("strategy")
        if owner and owner != graph.name:
            raise WrongThread(
                f"thread {thread} belongs to {owner}, not to {graph.name}: choose another thread, or run {owner}"
            )
    return await graph.aget_state(config)


def unfinished(state: StateSnapshot) -> bool:
    """Whether a thread's last run can be gone on with.

    `state.next` does not tell: it is empty, too, if a run broke off between the end of a node and the next checkpoint.
    """
    return bool(state.tasks)


def exists(state: StateSnapshot) -> bool:
    """Whether a thread has anything in it."""
    return state.created_at is not None


def status(state: StateSnapshot) -> ThreadStatus:
    """How a thread's last run stands."""
    if state.interrupts:
        return "waiting for a person"
    if unfinished(state):
        return "unfinished"
    outcome = state.values.get("outcome")
    found: ThreadStatus = outcome["status"] if outcome else "empty"
    return found


async def recent(saver: Saver, strategy: str | None = None) -> list[tuple[str, str]]:
    """Names and strategies of the threads of this command, the one asked last first."""
    wanted = {"source": "input", **({"strategy": strategy} if strategy else {})}
    names: dict[str, str] = {}
    async for saved in saver.alist(None, filter=wanted):
        kept: Mapping[str, Any] = {**saved.metadata}
        if "strategy" in kept:
            names.setdefault(saved.config["configurable"]["thread_id"], kept["strategy"])
    return list(names.items())


async def last_unfinished(graph: Graph, saver: Saver) -> str:
    """Name of the latest thread of a strategy whose run was interrupted.

    Raises:
        Misuse: if there is none.
    """
    for name, _ in await recent(saver, graph.name):
        if unfinished(await graph.aget_state(config_of(name))):
            return name
    raise Misuse(f'nothing to resume: no run of {graph.name} was interrupted; ask with: reflect run {graph.name} "..."')
