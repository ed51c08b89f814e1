"""Runs a strategy on every task of a data set, and keeps each result as it comes."""

import asyncio
import time
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from environments.base import Task
from evals.datasets import Dataset
from evals.results import About, Attempt, Result, Store, failed, nothing_yet
from evals.scoring import is_correct, measurable, measure, request
from evals.summary import Summary, summarise
from graphs.trials import rank
from state.context import Context
from state.trial import Trial

Graph = CompiledStateGraph[Any, Any, Any, Any]
OnResult = Callable[[Result, bool], None]
"""Is told a result, and whether it is new: not one of an earlier, interrupted run."""


async def evaluate(
    graph: Graph,
    dataset: Dataset,
    *,
    context: Context,
    out: Path,
    concurrency: int = 4,
    on_result: OnResult | None = None,
    retry_failed: bool = False,
) -> Summary:
    """Run a strategy on every task that has no result yet.

    A task that crashes is a result with its error. Whoever is interrupted calls again with the same arguments.

    Args:
        graph: The strategy, compiled without a checkpointer.
        dataset: The tasks.
        context: The settings of every run, its limits among them.
        out: The folder of the results, a new one or that of an interrupted run.
        concurrency: How many tasks are under way at once, from 1.
        on_result: Called with every result; first with those of the interrupted run.
        retry_failed: Whether tasks are run again that crashed, or whose run failed.

    Returns:
        The summary of all results.

    Raises:
        Misuse: if the folder holds another run, or cannot be written.
    """
    store = await asyncio.to_thread(Store, out, about(graph.get_name(), context, dataset))
    tell = on_result or (lambda result, new: None)
    try:
        known = [result for result in store.results.values() if not (retry_failed and failed(result))]
        for result in known:
            tell(result, False)
        done = {result["id"] for result in known}
        await _run_all(graph, dataset, context, concurrency, store, tell, done)
        return await asyncio.to_thread(summarise, store.about, store.results.values())
    finally:
        await asyncio.to_thread(store.close)


async def _run_all(
    graph: Graph, dataset: Dataset, context: Context, concurrency: int, store: Store, tell: OnResult, done: set[str]
) -> None:
    todo = iter([task for task in dataset.tasks if task["id"] not in done])

    async def work() -> None:
        for task in todo:
            result = await attempt(graph, dataset.environment, task, context)
            await _keep(result, store, tell)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except ExceptionGroup as faults:
        raise faults.exceptions[0] from faults


async def _keep(result: Result, store: Store, tell: OnResult) -> None:
    """Write a result to the end, also if this is cancelled meanwhile: the thread that writes is not to be stopped."""
    writing = asyncio.create_task(asyncio.to_thread(store.append, result))
    try:
        await asyncio.shield(writing)
    finally:
        await writing
        tell(result, True)


async def attempt(graph: Graph, environment: str, task: Task, context: Context) -> Result:
    """Run a strategy on one task, and measure the answer. What goes wrong becomes the error of the result."""
    result = nothing_yet(task)
    if measurable(environment, task):
        result["correct"] = False
    [fault] = await asyncio.gather(_fill(result, graph, environment, task, context), return_exceptions=True)
    if isinstance(fault, Exception | CancelledError):  # who cancels this run does not come here
        result["error"] = f"{type(fault).__name__}: {fault}".rstrip(": ")
    elif fault is not None:
        raise fault
    return result


async def _fill(result: Result, graph: Graph, environment: str, task: Task, context: Context) -> None:
    """Fill in a result step by step, so that what is known stays if the next step fails."""
    knows_tasks = _knows_tasks(graph)
    question = task["question"] if knows_tasks else request(environment, task)
    asked: dict[str, Any] = {"messages": [("user", question)], **({"task": task} if knows_tasks else {})}
    began = time.monotonic()
    try:
        state = await graph.ainvoke(asked, context=context)
    finally:
        result["seconds"] = round(time.monotonic() - began, 3)
    result["answer"], result["outcome"], result["usage"] = state.get("answer"), state.get("outcome"), state.get("usage")
    if result["answer"] is not None:
        result["scores"] = await _measure(environment, task, result["answer"], context)
    if result["correct"] is not None:
        result["correct"] = is_correct(environment, result["scores"])
        result["trials"] = await _attempts(environment, task, state.get("trials") or [], context)


@lru_cache(maxsize=8)
def _knows_tasks(graph: Graph) -> bool:
    return "task" in graph.get_input_jsonschema().get("properties", {})


async def _measure(environment: str, task: Task, answer: str, context: Context) -> dict[str, float]:
    return await measure(environment, task, answer, unsafe_code=getattr(context, "unsafe_code", False))


async def _attempts(environment: str, task: Task, trials: Sequence[Trial], context: Context) -> list[Attempt]:
    """Measure every trial, and the best one up to each."""
    answers = dict.fromkeys(trial["answer"] for trial in trials)
    correct = {
        answer: answer is not None and is_correct(environment, await _measure(environment, task, answer, context))
        for answer in answers
    }
    attempts: list[Attempt] = []
    for number, trial in enumerate(trials, 1):
        best = max(trials[:number], key=lambda made: (made["answer"] is not None, rank(made)))
        answer = trial["answer"]
        attempts.append(
            {
                "answer": answer,
                "solved": trial["solved"],
                "correct": correct[answer],
                "best_correct": correct[best["answer"]],
            }
        )
    return attempts


def about(strategy: str, context: Context, dataset: Dataset) -> About:
    """Return what is run, as plain data. A model object is known by the name of its class."""
    settings = {name: _plain(value) for name, value in context.model_dump().items()}
    libraries = ("reflective-agents", "langgraph", "langchain-core")
    return {
        "strategy": strategy,
        "settings": settings,
        "dataset": dataset.name,
        "environment": dataset.environment,
        "fingerprint": dataset.fingerprint,
        "tasks": len(dataset.tasks),
        "versions": {"python": python_version(), **{name: _version(name) for name in libraries}},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else type(value).__name__


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # run from a checkout
        return "not installed"
