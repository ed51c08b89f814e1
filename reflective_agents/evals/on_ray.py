"""Workers as actors of a Ray cluster: see `evals.workers`. The package must be importable on its machines, and keys be
set there."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import ray
from ray.exceptions import RayActorError

from reflective_agents.environments.base import Task
from reflective_agents.evals.run import Finished, Run
from reflective_agents.evals.worker import Job, Runner
from reflective_agents.evals.workers import WorkerLost, sharing


class Place:
    """What runs in an actor: a strategy, and as many tasks at once as it is sent."""

    def __init__(self, job: Job) -> None:
        self._runner = Runner(job)

    async def run(self, task: str) -> str:
        """Run a task, from JSON to JSON."""
        return json.dumps((await self._runner.run(json.loads(task)))._asdict(), default=str)


class Actor:
    """An actor as a worker."""

    def __init__(self, job: Job, concurrency: int) -> None:
        # Without num_cpus an actor waits for a processor, but does not hold it: more actors than processors run, too.
        settings = {"max_concurrency": concurrency, "scheduling_strategy": "SPREAD"}
        self._handle: Any = ray.remote(Place).options(**settings).remote(job)
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

        async def begin() -> Actor:
            return Actor(job, concurrency)

        async with sharing(begin, number, job["environment"]) as run:
            yield run
    finally:
        await asyncio.to_thread(ray.shutdown)
