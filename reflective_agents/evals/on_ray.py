"""Workers as actors of a Ray cluster: see `evals.workers`. The package must be importable on its machines, and keys be
set there."""

import asyncio
import json
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import ray
from ray.exceptions import RayActorError

from reflective_agents.environments.base import Task
from reflective_agents.evals.ledger import Ledger
from reflective_agents.evals.run import Finished, Run
from reflective_agents.evals.worker import Job, Runner
from reflective_agents.evals.workers import WorkerLost, sharing

POLL = 0.1
"""Seconds after which actors are asked again what they have spent."""


class TaskActor:
    """What runs in an actor: a strategy, and as many tasks at once as it is sent."""

    def __init__(self, job: Job) -> None:
        self._runner = Runner(job)

    async def run(self, task: str) -> str:
        """Run a task, from JSON to JSON."""
        return json.dumps((await self._runner.run(json.loads(task)))._asdict(), default=str)

    async def spent(self) -> dict[str, int]:
        """Return what all tasks have spent so far, and what is held for calls under way."""
        return self._runner.budget.total()


class Actor:
    """An actor as a worker."""

    def __init__(self, job: Job, concurrency: int) -> None:
        # Without num_cpus an actor waits for a processor, but does not hold it: more actors than processors run, too.
        settings = {"max_concurrency": concurrency + 1, "scheduling_strategy": "SPREAD"}  # one for `spent`
        self._handle: Any = ray.remote(TaskActor).options(**settings).remote(job)
        self.alive = True

    async def run(self, task: Task) -> Finished:
        """Run a task.

        Raises:
            WorkerLost: if the actor dies.
        """
        try:
            return Finished(**json.loads(await self._handle.run.remote(json.dumps(task))))
        except RayActorError as death:
            self.alive = False
            raise WorkerLost from death

    async def spent(self) -> dict[str, int]:
        """Return what its tasks have spent; nothing if it has died."""
        try:
            amounts: dict[str, int] = await self._handle.spent.remote()
        except RayActorError:
            return {}
        return amounts

    async def close(self) -> None:
        """Kill the actor: nothing that it does still matters."""
        await asyncio.to_thread(ray.kill, self._handle)


@asynccontextmanager
async def ray_workers(job: Job, address: str, number: int | None, concurrency: int) -> AsyncIterator[Run]:
    """Connect to a cluster, and yield what runs a task in one of its actors.

    Args:
        job: What is run.
        address: The cluster's, such as `ray://host:10001`, or `auto`; `local` starts one of this machine meanwhile.
        number: How many actors; None for one a processor of the cluster.
        concurrency: How many tasks are under way at once, in all of them together.
    """
    dashboard = False if address == "local" else None
    await asyncio.to_thread(
        ray.init, address, include_dashboard=dashboard, log_to_driver=False, logging_level=logging.ERROR
    )
    try:
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        number = number or max(int(resources.get("CPU", 1)), 1)

        actors: list[Actor] = []

        async def begin() -> Actor:
            actors.append(Actor(job, concurrency))
            return actors[-1]

        async with sharing(begin, number, job["environment"]) as run, recorded(actors, job.get("spent")):
            yield run
    finally:
        await asyncio.to_thread(ray.shutdown)


class Spender(Protocol):
    """Who says what it has spent so far."""

    async def spent(self) -> Mapping[str, int]:
        """Return amounts by the names of `ledger.UNITS`."""
        ...


@asynccontextmanager
async def recorded(spenders: Sequence[Spender], file: str | None) -> AsyncIterator[None]:
    """Write what others spend during the body into a ledger, ten times a second: it is on no machine of theirs.

    Args:
        spenders: Who spends; there may be more of them later.
        file: The ledger; None for none.
    """
    if file is None:
        yield
        return
    ledger, written = Ledger(Path(file)), defaultdict[int, Counter[str]](Counter)

    async def record() -> None:
        for number, spender in enumerate(list(spenders)):
            amounts = {name: amount - written[number][name] for name, amount in (await spender.spent()).items()}
            if any(amounts.values()):
                ledger.add(amounts)
                written[number].update(amounts)

    async def keep_recording() -> None:
        while True:
            await record()
            await asyncio.sleep(POLL)

    recording = asyncio.create_task(keep_recording())
    try:
        yield
    finally:
        recording.cancel()
        await asyncio.gather(recording, return_exceptions=True)
        await record()
        ledger.close()
