"""Workers as actors of a Ray cluster: see `evals.workers`. The package must be importable on its machines, and keys be
set there."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import ray
from ray.exceptions import RayActorError

from reflective_agents.environments.base import Task
from reflective_agents.evals.budget import Budget
from reflective_agents.evals.ledger import Ledger
from reflective_agents.evals.run import Finished, Run
from reflective_agents.evals.worker import Job, Runner
from reflective_agents.evals.workers import WorkerLost, sharing
from reflective_agents.models.account import Settle

POLL = 0.05
"""Seconds after which actors are asked again what they have spent."""


class ReportedBudget(Budget):
    """Holds calls of an actor until the driver has written them into the ledger, so that none is sent without it."""

    def __init__(self) -> None:
        super().__init__()
        self._reports = 0
        self._reported = asyncio.Condition()

    async def report(self) -> dict[str, int]:
        """Return what is spent and held. The driver writes it before it asks again."""
        async with self._reported:
            self._reports += 1
            self._reported.notify_all()
            return self.total()

    async def hold(self, tokens: int, nano: int | None) -> Settle:
        """Hold a call, until it is written: the next report has it, and the one after that is asked for once it is."""
        settle = await super().hold(tokens, nano)
        written = False
        try:
            async with self._reported:
                last = self._reports + 2
                await self._reported.wait_for(lambda: self._reports >= last)
            written = True
        finally:
            if not written:
                await settle(0, 0, 0)
        return settle


class TaskActor:
    """What runs in an actor: a strategy, and as many tasks at once as it is sent."""

    def __init__(self, job: Job) -> None:
        self._budget = ReportedBudget()
        self._runner = Runner(job, self._budget)

    async def run(self, task: str) -> str:
        """Run a task, from JSON to JSON."""
        return json.dumps((await self._runner.run(json.loads(task)))._asdict(), default=str)

    async def spent(self) -> dict[str, int]:
        """Return what all tasks have spent so far, and what is held for calls under way."""
        return await self._budget.report()


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
    """Write what others spend during the body into a ledger, which is on no machine of theirs.

    Args:
        spenders: Who spends; there may be more of them later.
        file: The ledger; None for none.
    """
    if file is None:
        yield
        return
    ledger, written = Ledger(Path(file)), dict[int, Counter[str]]()

    async def record(number: int) -> None:
        total = await spenders[number].spent()
        earlier = written.setdefault(number, Counter())
        amounts = {name: amount - earlier[name] for name, amount in total.items()}
        if any(amounts.values()):
            ledger.add(amounts)
            earlier.update(amounts)

    async def keep_recording(number: int) -> None:
        while True:
            await record(number)
            await asyncio.sleep(POLL)

    async def record_all(group: asyncio.TaskGroup) -> None:
        recordings: list[asyncio.Task[None]] = []
        try:
            while True:
                new = range(len(recordings), len(spenders))
                recordings += [group.create_task(keep_recording(number)) for number in new]
                await asyncio.sleep(POLL)
        finally:
            for recording in recordings:
                recording.cancel()

    try:
        async with asyncio.TaskGroup() as group:
            recording = group.create_task(record_all(group))
            yield
            recording.cancel()
        for number in written:
            await record(number)
    except ExceptionGroup as faults:
        raise faults.exceptions[0] from faults
    finally:
        ledger.close()
