"""Measures evaluations of one call a task, beside the bare clients: `python -m bench.samples`, on a quiet machine.

Each way makes the same samples, by the same requests. Its processor time is that of all processes which take part, but
for the server's. The best of several rounds counts.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import openai
import psutil
from httpx2 import AsyncClient
from langchain_core.messages import BaseMessage, convert_to_openai_messages
from langchain_openai import ChatOpenAI

from bench.canned import Canned, canned
from bench.options import parser_of
from bench.replay import Recorder
from reflective_agents.environments.base import Task
from reflective_agents.environments.plain import PLAIN
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.on_ray import ray_workers
from reflective_agents.evals.run import Run, evaluate, spare_garbage_collection
from reflective_agents.evals.worker import Job
from reflective_agents.evals.workers import local_workers
from reflective_agents.graphs import chain_of_thought
from reflective_agents.models.providers import close_models, expect_many_calls
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext

LATENCY = 0.1
ROUNDS = 5
WORKERS = 2
CONTEXT = ChainOfThoughtContext(model="openai:canned", samples=1, search="none")
JOB = Job(strategy="chain_of_thought", settings=CONTEXT.model_dump(), environment=PLAIN.name, cache=None)
"""What the workers run."""
Work = Callable[[int], Awaitable[None]]
"""Makes so many samples."""
Way = Callable[[int], AbstractAsyncContextManager[Work]]
"""Gets ready to make samples, so many at once."""


class Figures(NamedTuple):
    """The seconds that a sample took: by the clock, and of the processors here and in the model's server."""

    clock: float
    cpu: float
    server: float

    def __str__(self) -> str:
        return f"{1 / self.clock:,.0f} | {1000 * self.cpu:.2f} | {1000 * self.server:.2f}"


@asynccontextmanager
async def async_openai(at_once: int) -> AsyncIterator[Work]:
    """Send the requests with OpenAI's client."""
    messages = convert_to_openai_messages(await _prompt())
    async with openai.AsyncOpenAI(max_retries=0) as client:
        completions: Any = client.chat.completions
        yield partial(_flood, partial(completions.create, model="canned", messages=messages), at_once)


@asynccontextmanager
async def chat_openai(
    at_once: int, transport: type[AsyncClient] = openai.DefaultAsyncHttpxClient
) -> AsyncIterator[Work]:
    """Send the requests with LangChain's client."""
    async with transport() as client:
        model = ChatOpenAI(model="canned", max_retries=0, http_async_client=client)
        yield partial(_flood, partial(model.ainvoke, await _prompt()), at_once)


@asynccontextmanager
async def one_process(at_once: int) -> AsyncIterator[Work]:
    """Evaluate in this process, as `reflect eval` does."""
    await _prompt()
    expect_many_calls()
    spare_garbage_collection()
    yield partial(_evaluate, None, at_once)
    await close_models()


@asynccontextmanager
async def processes(at_once: int) -> AsyncIterator[Work]:
    """Evaluate in processes of this machine."""
    async with local_workers(JOB, WORKERS) as run:
        yield partial(_evaluate, run, at_once)


@asynccontextmanager
async def actors(at_once: int) -> AsyncIterator[Work]:
    """Evaluate in actors of a Ray cluster of this machine."""
    async with ray_workers(JOB, "local", WORKERS, at_once) as run:
        yield partial(_evaluate, run, at_once)


WAYS: dict[str, Way] = {
    "AsyncOpenAI": async_openai,
    "ChatOpenAI": chat_openai,
    "ChatOpenAI, aiohttp": partial(chat_openai, transport=openai.DefaultAioHttpClient),
    "reflect eval": one_process,
    f"--workers {WORKERS}": processes,
    f"--ray local --workers {WORKERS}": actors,
}


async def _prompt() -> list[BaseMessage]:
    """Return the messages that a sample sends."""
    recorder = Recorder()
    question = {"messages": [("user", "What is question 0?")]}
    await chain_of_thought.graph.ainvoke(question, {"callbacks": [recorder]}, context=CONTEXT)
    await close_models()
    return recorder.waves[0][0][0]


async def _flood(ask: Callable[[], Awaitable[Any]], at_once: int, number: int) -> None:
    left = iter(range(number))

    async def work() -> None:
        for _ in left:
            await ask()

    await asyncio.gather(*(work() for _ in range(at_once)))


async def _evaluate(run: Run | None, at_once: int, number: int) -> None:
    tasks = [Task(id=str(task), question=f"What is question {task}?", gold="x") for task in range(number)]
    data = Dataset("samples", PLAIN.name, tasks)
    with TemporaryDirectory() as folder:
        summary = await evaluate(
            chain_of_thought.graph, data, context=CONTEXT, out=Path(folder), concurrency=at_once, elsewhere=run
        )
    assert summary["correct"] == number


async def measure(way: Way, at_once: int, number: int, rounds: int, server: Canned) -> Figures:
    """Make samples, so many at once, and return what each of them took in the best of several rounds."""
    async with way(at_once) as work:
        await work(2 * at_once)  # loads what is loaded late, and opens the connections
        return min([await _round(work, number, server) for _ in range(rounds)])


async def _round(work: Work, number: int, server: Canned) -> Figures:
    began, cpu, there = time.perf_counter(), _cpu(server), server.cpu()
    await work(number)
    ended, spent, served = time.perf_counter(), _cpu(server), server.cpu()
    return Figures(*(seconds / number for seconds in (ended - began, spent - cpu, served - there)))


def _cpu(server: Canned) -> float:
    """Return the seconds of processor time of this process and of all that it has started, but for the server."""
    ours = psutil.Process()
    times = [process.cpu_times() for process in (ours, *ours.children(recursive=True)) if process.pid != server.pid]
    return float(sum(process.user + process.system for process in times))


def main() -> None:
    """Measure each way at each concurrency, and print a row of each."""
    parser = parser_of("bench.samples", __doc__)
    parser.add_argument("--at-once", type=int, nargs="+", default=[20, 50, 100], help="tasks under way at once")
    parser.add_argument("--number", type=int, default=500, help="samples of a round")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="what is measured")
    options = parser.parse_args()
    rounds = ROUNDS
    if options.quick:
        options.at_once, options.number, rounds = [4], 8, 1
        options.ways = [way for way in options.ways if "--" not in way]
    print(f"load average before: {psutil.getloadavg()[0]:.1f}\n")
    print("| | at once | samples a second | processor, ms a sample | the server's |\n|---|---|---|---|---|", flush=True)
    with canned(LATENCY) as server:
        for at_once in options.at_once:
            for name in options.ways:
                figures = asyncio.run(measure(WAYS[name], at_once, options.number, rounds, server))
                print(f"| {name} | {at_once} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
