"""A process that runs tasks of an evaluation for another one: `python -m reflective_agents.evals.worker`.

It reads lines of JSON from stdin, first what is run, then one task a line, and writes one result a line, as they come.
When stdin ends it ends, too: so it does not outlive whoever has started it.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import NotRequired

from typing_extensions import TypedDict

from reflective_agents.environments.base import Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.budget import Budget
from reflective_agents.evals.run import Finished, attempt, spare_garbage_collection
from reflective_agents.evals.scorers import resolve_scorer
from reflective_agents.graphs import builder_of
from reflective_agents.models.account import charge_to
from reflective_agents.models.cache import open_cache
from reflective_agents.models.providers import close_models, expect_many_calls
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import settings_of

LONGEST = 1_000_000_000
"""Bytes of a line."""


class Job(TypedDict):
    """What a worker needs to know: all of it plain data."""

    strategy: str
    settings: JsonObject
    environment: str
    cache: str | None
    scorer: NotRequired[str | None]
    spent: NotRequired[str]
    """The ledger of the evaluation, if it has a budget: a file on the machine of the driver."""


class Runner:
    """A strategy that is ready to run tasks."""

    def __init__(self, job: Job, budget: Budget | None = None) -> None:
        self._graph = builder_of(job["strategy"]).compile(name=job["strategy"])
        self._environment = job["environment"]
        self._context = settings_of(job["strategy"])(**job["settings"])
        environment = resolve_environment(job["environment"], unsafe_code=getattr(self._context, "unsafe_code", False))
        self._scorer = resolve_scorer(job.get("scorer"), environment, self._context)
        self._cache = open_cache(Path(job["cache"])) if job["cache"] else None
        self.budget = budget or Budget()
        if "spent" in job:
            charge_to(self.budget)
        spare_garbage_collection()

    async def run(self, task: Task) -> Finished:
        """Run one task."""
        expect_many_calls()
        return await attempt(self._graph, self._environment, task, self._context, self._cache, self._scorer)


async def serve(read: asyncio.StreamReader, out: int) -> None:
    """Run the tasks that are read, all at once, and write what comes of them to a file descriptor."""
    job: Job = json.loads(await read.readline())
    runner = Runner(job)
    if ledger := job.get("spent"):
        runner.budget.record(Path(ledger))
    under_way: set[asyncio.Task[None]] = set()
    writing = asyncio.Lock()  # a pipe takes a long line in parts, between which another thread could write

    async def work(task: Task) -> None:
        line = json.dumps((await runner.run(task))._asdict(), default=str).encode() + b"\n"
        async with writing:
            await asyncio.to_thread(_write, out, line)

    while line := await read.readline():
        running = asyncio.create_task(work(json.loads(line)))
        under_way.add(running)
        running.add_done_callback(under_way.discard)
    for running in under_way:
        running.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    await close_models()


def _write(out: int, line: bytes) -> None:
    while line:
        line = line[os.write(out, line) :]


async def _main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed must not get among the results
    read = asyncio.StreamReader(limit=LONGEST)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(read), sys.stdin)
    await serve(read, out)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for whoever has started this
    asyncio.run(_main())
