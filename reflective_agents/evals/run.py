"""Runs a strategy on every task of a data set, and keeps each result as it comes."""

import asyncio
import gc
import time
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.graph.state import CompiledStateGraph

from reflective_agents.environments.base import Environment, Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.budget import SPENT, Budget, Cut
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.description import about
from reflective_agents.evals.results import Result, empty_result, failed
from reflective_agents.evals.scorers import Scorer, ScorerLike, resolve_scorer, with_form
from reflective_agents.evals.scoring import score
from reflective_agents.evals.store import Store
from reflective_agents.evals.summary import Summary, summarise
from reflective_agents.evals.transcripts import Transcript, transcript_of
from reflective_agents.models.cache import Cache, caching
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.secrets import redacted

Graph = CompiledStateGraph[Any, Any, Any, Any]


class Finished(NamedTuple):
    """What came of a task, and what it leaves behind; nothing if it crashed before its run had ended."""

    result: Result
    transcript: Transcript | None


Run = Callable[[Task], Awaitable[Finished]]
"""What runs a task, in this process or in another one."""
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
    cache: Cache | None = None,
    budget: Budget | None = None,
    scorer: ScorerLike = None,
    elsewhere: Run | None = None,
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
        cache: Replies that were paid for already; None for none.
        budget: What all tasks may spend together; those that it cuts short have no result. None for any amount.
        scorer: What says whether an answer is correct: one of `evals.scorers`, its name, or a function of the answer
            and its task. None for the measure of the tasks' environment.
        elsewhere: What runs a task in another process; None to run them in this one.

    Returns:
        The summary of all results.

    Raises:
        Misuse: if the tasks cannot be run here, the folder holds another run, or it cannot be written.
    """
    environment = resolve_environment(dataset.environment, unsafe_code=getattr(context, "unsafe_code", False))
    await environment.ready()
    scoring = await asyncio.to_thread(resolve_scorer, scorer, environment, context)
    store = await asyncio.to_thread(Store, out, about(graph.get_name(), context, dataset, scorer))
    tell = on_result or (lambda result, new: None)
    if budget is None and (out / SPENT).exists():
        budget = Budget()  # a later session with a budget must know what this one spends
    try:
        previous = [result for result in store.results.values() if not (retry_failed and failed(result))]
        for result in previous:
            tell(result, False)
        done = {result["id"] for result in previous}
        run = elsewhere or partial(attempt, graph, dataset.environment, context=context, cache=cache, scorer=scoring)
        todo = [task for task in dataset.tasks if task["id"] not in done]
        if elsewhere and budget:
            run = _counted(run, budget)
        with budget.held(out, store.results.values()) if budget else nullcontext():
            await _run_all(run, todo, concurrency, store, tell, budget)
        return await asyncio.to_thread(summarise, store.about, store.results.values())
    finally:
        await asyncio.to_thread(store.close)


def _counted(run: Run, budget: Budget) -> Run:
    """Count against the budget what tasks have spent elsewhere, where their calls are not held against it."""

    async def counting(task: Task) -> Finished:
        finished = await run(task)
        budget.add(finished.result)
        return finished

    return counting


async def _run_all(
    run: Run, tasks: Sequence[Task], concurrency: int, store: Store, tell: OnResult, budget: Budget | None
) -> None:
    # One iterator for all workers: each takes the next task when it is free.
    todo = iter(tasks)

    async def work() -> None:
        for task in todo:
            if budget and budget.reached:
                return
            with budget.task() if budget else nullcontext(Cut()) as cut:
                finished = await run(task)
            if not cut.short:
                await _keep(finished, store, tell)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except ExceptionGroup as faults:
        raise faults.exceptions[0] from faults


async def _keep(finished: Finished, store: Store, tell: OnResult) -> None:
    """Write a result to the end, also if this is cancelled meanwhile: the thread that writes is not to be stopped."""
    writing = asyncio.create_task(asyncio.to_thread(store.append, *finished))
    try:
        await asyncio.shield(writing)
    finally:
        await writing
        tell(finished.result, True)


def spare_garbage_collection() -> None:
    """Let the garbage collector leave alone what is loaded, and look less often at what many short runs leave."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def attempt(
    graph: Graph,
    environment: str | Environment,
    task: Task,
    context: Context,
    cache: Cache | None = None,
    scorer: ScorerLike = None,
) -> Finished:
    """Run a strategy on one task, and score the answer. What goes wrong becomes the error of the result."""
    environment = resolve_environment(environment, unsafe_code=getattr(context, "unsafe_code", False))
    scorer = resolve_scorer(scorer, environment, context)
    result = empty_result(task)
    if scorer.measurable(task):
        result["correct"] = False
    state: JsonObject = {}
    with caching(cache) as replies:
        # `gather` tells a task that has cancelled itself, which is a fault of its own, from the cancellation
        # of this run.
        [fault] = await asyncio.gather(
            _fill(result, state, graph, environment, scorer, task, context), return_exceptions=True
        )
    if replies:
        result["cached_calls"] = replies.hits
    if isinstance(fault, Exception | CancelledError):  # who cancels this run does not come here
        result["error"] = redacted(f"{type(fault).__name__}: {fault}".rstrip(": "))
    elif fault is not None:
        raise fault
    if not state:
        return Finished(result, None)
    artefacts = graph.output_channels
    if isinstance(artefacts, str):
        artefacts = [artefacts]
    return Finished(result, transcript_of(task["id"], state, artefacts, graph.get_name(), context))


async def _fill(
    result: Result,
    state: JsonObject,
    graph: Graph,
    environment: Environment,
    scorer: Scorer,
    task: Task,
    context: Context,
) -> None:
    """Fill in a result and the state step by step, so that what is known stays if the next step fails."""
    knows_tasks = _knows_tasks(graph)
    question = task["question"] if knows_tasks else environment.request(task)
    messages = with_form(question, scorer, task, environment, context)
    run_input: JsonObject = {"messages": messages}
    if knows_tasks:
        run_input["task"] = task
    began = time.monotonic()
    try:
        state |= await graph.ainvoke(run_input, context=context, output_keys=graph.stream_channels_list)
    finally:
        result["seconds"] = round(time.monotonic() - began, 3)
    result["answer"], result["outcome"], result["usage"] = state.get("answer"), state.get("outcome"), state.get("usage")
    await score(result, scorer, task, state.get("trials") or [])


@lru_cache(maxsize=8)
def _knows_tasks(graph: Graph) -> bool:
    return "task" in graph.get_input_jsonschema().get("properties", {})
