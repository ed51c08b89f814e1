"""Where the tasks of an evaluation are run besides this process: processes of this machine, or actors of a Ray cluster.

What a worker has not answered when it dies is run again by another one. Only this process writes results.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from reflective_agents.environments.base import Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.results import empty_result
from reflective_agents.evals.run import Finished, Run
from reflective_agents.evals.worker import LONGEST, Job

DEATHS = 3
"""Workers that one task may be under way in when they die; then it is the task's fault, most likely."""


class WorkerLost(Exception):
    """Raised when a worker has died before it has answered."""


class Worker(Protocol):
    """What runs tasks elsewhere."""

    @property
    def alive(self) -> bool:
        """Whether it can take a task."""
        ...

    async def run(self, task: Task) -> Finished:
        """Run a task.

        Raises:
            WorkerLost: if the worker dies.
        """
        ...

    async def close(self) -> None:
        """End it."""
        ...


class Process:
    """A process that runs tasks: see `evals.worker`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._waiting: dict[str, asyncio.Future[Finished]] = {}
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def begin(cls, job: Job) -> "Process":
        """Start a worker."""
        command = [sys.executable, "-m", "reflective_agents.evals.worker"]
        pipe = asyncio.subprocess.PIPE
        worker = cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LONGEST))
        worker._send(job)
        return worker

    async def run(self, task: Task) -> Finished:
        """Run a task.

        Raises:
            WorkerLost: if the process dies.
        """
        if not self.alive:
            raise WorkerLost
        answer: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()
        self._waiting[task["id"]] = answer
        self._send(task)
        try:
            return await answer
        finally:
            self._waiting.pop(task["id"], None)

    @property
    def alive(self) -> bool:
        """Whether it can take a task."""
        return not self._listening.done()

    async def close(self) -> None:
        """End it, and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(10):
                await self._listening
        except TimeoutError:
            self.process.kill()
        await self.process.wait()

    def _send(self, data: Job | Task) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(data).encode() + b"\n")

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        try:
            # A line without an end is what a dying process has left.
            while (line := await self.process.stdout.readline()).endswith(b"\n"):
                finished = Finished(**json.loads(line))
                answer = self._waiting.get(finished.result["id"])
                if answer and not answer.done():
                    answer.set_result(finished)
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(WorkerLost())


@asynccontextmanager
async def local_workers(job: Job, number: int) -> AsyncIterator[Run]:
    """Start processes of this machine, and yield what runs a task in one of them."""

    async def begin() -> Process:
        return await Process.begin(job)

    async with sharing(begin, number, job["environment"]) as run:
        yield run


@asynccontextmanager
async def sharing(begin: Callable[[], Awaitable[Worker]], number: int, environment: str) -> AsyncIterator[Run]:
    """Begin workers, and yield what runs a task in the one that has the least to do. Whichever dies is replaced.

    Args:
        begin: Begins one.
        number: How many.
        environment: That of the tasks.
    """
    team = [await begin() for _ in range(number)]
    busy = [0] * number
    replacing = asyncio.Lock()

    async def run(task: Task) -> Finished:
        for _ in range(DEATHS):
            index = busy.index(min(busy))
            busy[index] += 1
            try:
                # Two tasks may meet the same dead worker.
                async with replacing:
                    if not team[index].alive:
                        await team[index].close()
                        team[index] = await begin()
                return await team[index].run(task)
            except WorkerLost:
                continue
            finally:
                busy[index] -= 1
        result = empty_result(task)
        result["correct"] = False if resolve_environment(environment).measurable(task) else None
        result["error"] = f"WorkerLost: {DEATHS} workers died while it was under way"
        return Finished(result, None)

    try:
        yield run
    finally:
        await asyncio.gather(*(worker.close() for worker in team))
