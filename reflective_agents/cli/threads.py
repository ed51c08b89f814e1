"""Where conversations are kept: in an SQLite file, or in Postgres if DATABASE_URL is set."""

import asyncio
import json
import os
import secrets
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from hashlib import sha256
from typing import Literal

from filelock import FileLock, Timeout
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from reflective_agents.cli.database import home_folder, open_database
from reflective_agents.cli.output import one_line, print_table
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, WrongThread
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.outcome import Status
from reflective_agents.state.run import Input, Output, RunState
from reflective_agents.state.settings import strategy_names

Saver = BaseCheckpointSaver[str]
Graph = CompiledStateGraph[RunState, Context, Input, Output]
ThreadStatus = Status | Literal["waiting for a person", "unfinished", "empty"]


@asynccontextmanager
async def open_saver() -> AsyncIterator[Saver]:
    """Open the threads for the duration of the body.

    Raises:
        NoDatabase: if they cannot be reached or opened, or are lost on the way.
    """
    async with open_database("langgraph.checkpoint", "Saver", "threads.sqlite") as saver:
        yield saver


@asynccontextmanager
async def lock_thread(saver: Saver, thread: str) -> AsyncIterator[None]:
    """Keep other runs of the command off a thread for the duration of the body: they would overwrite each other.

    Raises:
        Misuse: if another one is under way on it.
    """
    in_use = Misuse(f"thread {thread} is in use by another run: wait for its end, or choose another thread")
    key = sha256(thread.encode()).hexdigest()[:16]
    if os.environ.get("DATABASE_URL"):
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg import AsyncConnection

        assert isinstance(saver, AsyncPostgresSaver)
        assert isinstance(saver.conn, AsyncConnection)
        # Postgres takes a signed number of 64 bits.
        lock = await saver.conn.execute("SELECT pg_try_advisory_lock(%s) AS taken", (int(key, 16) - 2**63,))
        if (await lock.fetchone() or {})["taken"] is not True:
            raise in_use
        yield  # the lock ends with the connection
        return
    folder = home_folder().expanduser() / "locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        with FileLock(folder / key, blocking=False, thread_local=False):
            yield
    except Timeout as error:
        raise in_use from error


def new_name(strategy: str) -> str:
    """Make a readable name for a new thread, such as `lats-20261120-153012-a1b2`."""
    return f"{strategy}-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def config_of(thread: str, strategy: str = "", settings: JsonMapping | None = None) -> RunnableConfig:
    """Return the configuration of a run on a thread. The settings are kept with the checkpoints, for a later resume."""
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    if strategy:
        config["metadata"] = {"strategy": strategy, "settings": json.dumps(settings or {})}
    return config


def config_to_resume(state: StateSnapshot, strategy: str, settings: JsonMapping) -> RunnableConfig:
    """Return the configuration that resumes a run from a state.

    A step that was cancelled while its writes were being saved has saved only some of them. LangGraph would take it for
    finished and never reach the next step, so naming the checkpoint here runs such a step again.
    """
    config = config_of(_thread_of(state.config), strategy, settings)
    if any(task.error for task in state.tasks):
        config["configurable"] = {**state.config.get("configurable", {})}
    return config


def stored_settings(state: StateSnapshot) -> JsonObject:
    """Return the settings that were given to the run that a thread's last checkpoint belongs to."""
    metadata: JsonObject = {**(state.metadata or {})}
    settings: JsonObject = json.loads(metadata.get("settings", "null")) or state.values.get("settings") or {}
    return settings


async def read_thread(graph: Graph, saver: Saver, thread: str) -> StateSnapshot:
    """Read the last state of a thread; it has no values if there is no such thread.

    Raises:
        WrongThread: if it belongs to another strategy than the graph.
    """
    config = config_of(thread)
    with _damage(f"thread {thread}"):
        saved = await saver.aget_tuple(config)
        if saved:
            owner = owner_of(saved)
            if owner and owner != graph.name:
                raise WrongThread(
                    f"thread {thread} belongs to {owner}, not to {graph.name}: choose another thread, or run {owner}"
                )
        return await graph.aget_state(config)


def owner_of(saved: CheckpointTuple) -> str | None:
    """Return the strategy that a checkpoint belongs to, if it says so."""
    metadata: JsonMapping = {**saved.metadata}
    owner: str | None = saved.checkpoint["channel_values"].get("strategy") or metadata.get("strategy")
    return owner


@contextmanager
def _damage(what: str) -> Iterator[None]:
    """Say in a sentence that a checkpoint is damaged: the saver raises whatever it meets in there.

    Raises:
        WrongThread: if the body meets something that is not a checkpoint.
    """
    try:
        yield
    except Misuse:
        raise
    except (NotImplementedError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise WrongThread(
            f"{what} cannot be read ({type(error).__name__}), its checkpoints are damaged: choose another thread, "
            "or set REFLECT_HOME to another folder"
        ) from error


async def restore_thread(graph: Graph, saver: Saver, before: StateSnapshot) -> None:
    """Leave a thread as it was before a run that was refused: nothing of it is to be resumed.

    Args:
        graph: The strategy.
        saver: Where the thread is kept.
        before: The state of the thread before the run.
    """
    if exists(before):
        await graph.aupdate_state(before.config, None, as_node="__copy__")
    else:
        await saver.adelete_thread(_thread_of(before.config))


def unfinished(state: StateSnapshot) -> bool:
    """Tell whether a thread's last run can be resumed.

    `state.next` does not tell: it is empty, too, if a run broke off between the end of a node and the next checkpoint.
    """
    return bool(state.tasks)


def exists(state: StateSnapshot) -> bool:
    """Tell whether a thread has anything in it."""
    return state.created_at is not None


def status(state: StateSnapshot) -> ThreadStatus:
    """Return the status of a thread's last run."""
    if state.interrupts:
        return "waiting for a person"
    if unfinished(state):
        return "unfinished"
    outcome = state.values.get("outcome")
    ended: ThreadStatus = outcome["status"] if outcome else "empty"
    return ended


def _thread_of(config: RunnableConfig) -> str:
    return str(config.get("configurable", {})["thread_id"])


async def recent(saver: Saver, strategy: str | None = None) -> list[tuple[str, str]]:
    """Return names and strategies of the threads of this command, the most recently used first."""
    inputs = {"source": "input"}
    if strategy:
        inputs["strategy"] = strategy
    names: dict[str, str] = {}
    with _damage("a thread"):
        async for saved in saver.alist(None, filter=inputs):
            metadata: JsonMapping = {**saved.metadata}
            if "strategy" in metadata:
                # The latest input of a thread comes first.
                names.setdefault(_thread_of(saved.config), metadata["strategy"])
    return list(names.items())


async def last_unfinished(graph: Graph, saver: Saver) -> str:
    """Name of the latest thread of a strategy whose run was interrupted.

    Raises:
        Misuse: if there is none.
    """
    names = [name for name, _ in await recent(saver, graph.name)]
    for name in names:
        if unfinished(await graph.aget_state(config_of(name))):
            return name
    command = f"reflect run {graph.name}"
    way = f'ask with: {command} "..."'
    if names:
        way = f"show the last answer with: {command} --thread {shlex.quote(names[0])} --resume"
    raise Misuse(f"nothing to resume: no run of {graph.name} was interrupted; {way}")


def list_threads(limit: int) -> int:
    """Write the threads, the one asked last first."""
    rows = asyncio.run(_rows(limit))
    print_table(("thread", "strategy", "last step", "status", "question"), rows)
    return 0


async def _rows(limit: int) -> list[tuple[str, ...]]:
    async with open_saver() as saver:
        rows: list[tuple[str, ...]] = []
        for name, strategy in (await recent(saver))[:limit]:
            if strategy not in strategy_names():
                continue
            state = await read_thread(load(strategy, saver), saver, name)
            when = datetime.fromisoformat(state.created_at or "").astimezone()
            questions = [message.text for message in state.values.get("messages", []) if message.type == "human"]
            question = one_line(questions[-1], 60) if questions else ""
            rows.append((name, strategy, f"{when:%Y-%m-%d %H:%M}", status(state), question))
        return rows


def load(name: str, saver: Saver | None = None, store: BaseStore | None = None) -> Graph:
    """Return the graph of a strategy, with a saver for its threads and a store for what outlives them, if given."""
    from reflective_agents.graphs import builder_of

    graph: Graph = builder_of(name).compile(checkpointer=saver, store=store, name=name)
    return graph
