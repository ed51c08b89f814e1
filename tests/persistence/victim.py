"""A run in a process of its own that is killed without warning."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Coroutine
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from reflective_agents.testing.script import Request
from tests.persistence.runs import QUESTION, SETTINGS, THREAD, open_saver, stored

# A process forked from one that has imported everything starts at once; clients are imported when used.
processes = multiprocessing.get_context("forkserver")
CLIENTS = ["bs4", "httpcore2", "langchain_openai", "openai.resources.chat"]
processes.set_forkserver_preload([__name__, *CLIENTS, "tests.persistence.talkers"])


Life = Callable[[str, str, int | None], Coroutine[Any, Any, None]]
"""What a process does, under a name, with a database, until it is killed as it begins this write."""


def start(live: Life, name: str, database: str, kill_at: int | None = None) -> ForkServerProcess:
    """Let a process live, until it is killed as it begins a write, if it is told which one."""
    process = processes.Process(target=_live, args=(live, name, database, kill_at))
    process.start()
    return process


def _live(live: Life, name: str, database: str, kill_at: int | None) -> None:
    asyncio.run(live(name, database, kill_at))


class Victim:
    """A run that is killed with SIGKILL: at a call (`strike` is the server's latency), or as a checkpoint is stored."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.at_call: int | None = None
        self.calls = 0

    def strike(self, _: Request) -> float:
        """Count a call; the fatal one is never answered to the victim. The dead make no more calls."""
        self.calls += 1
        if self.calls == self.at_call and self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
        return 0.0

    def run(self, strategy: str, database: str, *, at_call: int | None = None, at_step: int | None = None) -> None:
        """Run until death: at the call of this number, or right after the checkpoint of this super-step is stored."""
        self.at_call = at_call
        known = processes.Event()
        process = processes.Process(target=live, args=(known, strategy, database, at_step, dict(os.environ)))
        process.start()
        self.pid = process.pid
        known.set()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL


def live(known: Event, strategy: str, database: str, at_step: int | None, environment: dict[str, str]) -> None:
    """What the process does, once the killer knows its id."""
    known.wait(60)
    os.environ.clear()
    os.environ.update(environment)
    asyncio.run(_run(strategy, database, at_step))


async def _run(strategy: str, database: str, at_step: int | None) -> None:
    def last_moment(metadata: Any) -> None:
        if metadata["step"] == at_step:
            os.kill(os.getpid(), signal.SIGKILL)

    class Sqlite(AsyncSqliteSaver):
        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            saved = await super().aput(config, checkpoint, metadata, new_versions)
            last_moment(metadata)
            return saved

    class Postgres(AsyncPostgresSaver):
        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            saved = await super().aput(config, checkpoint, metadata, new_versions)
            last_moment(metadata)
            return saved

    async with open_saver(database, Sqlite, Postgres) as saver:
        graph = stored(strategy, saver)
        await graph.ainvoke(QUESTION, THREAD, context=SETTINGS[strategy], durability="sync")
