"""Where conversations are kept: in an SQLite file, or in Postgres if DATABASE_URL is set."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from cli.database import open_database
from state.errors import Misuse, WrongThread

Saver = BaseCheckpointSaver[Any]
Graph = CompiledStateGraph[Any, Any, Any, Any]
ThreadStatus = Literal["waiting for a person", "unfinished", "solved", "limit_reached", "exhausted", "failed", "empty"]


@asynccontextmanager
async def open_saver() -> AsyncIterator[Saver]:
    """Open the threads for the duration of the body.

    Raises:
        NoDatabase: if they cannot be reached or opened, or are lost on the way.
    """
    async with open_database("langgraph.checkpoint", "Saver", "threads.sqlite") as saver:
        yield saver


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
