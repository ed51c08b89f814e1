"""Measures the answers of a finished run anew, by the equality of today."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from reflective_agents.environments.base import Environment, Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.results import Attempt, Result, Store, read_run
from reflective_agents.evals.summary import Summary, summarise
from reflective_agents.state.errors import Misuse


class Rescored(NamedTuple):
    """What came of it."""

    before: Summary
    after: Summary
    changed: list[str]
    """The ids of the tasks whose scores are others now."""


async def rescore(
    folder: Path,
    tasks: Mapping[str, Task] | None = None,
    *,
    environment: Environment | None = None,
    unsafe_code: bool = False,
) -> Rescored:
    """Measure every answer of a run anew, and keep the new scores beside the old ones, of which the later ones count.

    Args:
        folder: The folder of the run.
        tasks: The tasks by id; None to take question and right answer from the results.
        environment: Who measures; None for the one that the run names.
        unsafe_code: Whether programs may run as plain processes where there is no sandbox.

    Raises:
        Misuse: if the folder holds no run or is in use, or the answers cannot be measured without the data set of
            the run, or with this one.
    """
    about, results = await asyncio.to_thread(read_run, folder)
    environment = environment or resolve_environment(about["environment"], unsafe_code=unsafe_code)
    if environment.scores_by_data and tasks is None:
        raise Misuse(f"answers of {environment.name} are measured by the data of their tasks: add --dataset FILE")
    if tasks is not None:
        _check_same(tasks, results, about["dataset"])
    store = await asyncio.to_thread(Store, folder, None)
    try:
        before, changed = await asyncio.to_thread(summarise, about, [*results.values()]), []
        for name, result in results.items():
            new = await measured(environment, (tasks or {}).get(name) or _task(result), result)
            if new != result:
                await asyncio.to_thread(store.append, new)
                changed.append(name)
        return Rescored(before, await asyncio.to_thread(summarise, about, store.results.values()), changed)
    finally:
        await asyncio.to_thread(store.close)


def _check_same(tasks: Mapping[str, Task], results: Mapping[str, Result], dataset: str) -> None:
    """Refuse tasks that are not those of the results: an id may be no more than a place in a file."""
    for name, result in results.items():
        if name not in tasks:
            raise Misuse(f"the data set does not hold task {name}: give the one of the run, {dataset}")
        if tasks[name]["question"] != result["question"]:
            raise Misuse(f"task {name} of the data set is another question: give the one of the run, {dataset}")


async def measured(environment: Environment, task: Task, result: Result) -> Result:
    """Return a result with the scores that its answers have now."""
    if result["answer"] is None or not environment.measurable(task):
        return result
    scores = await environment.measure(task, result["answer"])
    answers = {trial["answer"] for trial in result["trials"] if trial["answer"] is not None}
    right = {answer: environment.is_correct(await environment.measure(task, answer)) for answer in answers}
    trials = _attempts(result["trials"], right)
    return {**result, "scores": scores, "correct": environment.is_correct(scores), "trials": trials}


def _attempts(trials: list[Attempt], right: Mapping[str, bool]) -> list[Attempt]:
    """Return the trials with their new scores.

    Which of the earlier trials was the best is not stored: it is the last that was as correct then as the best.
    """
    attempts: list[Attempt] = []
    for number, trial in enumerate(trials, 1):
        best = [made for made in trials[:number] if made["correct"] == trial["best_correct"]][-1:] or [trial]
        now, then = (right.get(made["answer"] or "", False) for made in (trial, best[0]))
        attempts.append({**trial, "correct": now, "best_correct": then})
    return attempts


def _task(result: Result) -> Task:
    task = Task(id=result["id"], question=result["question"])
    if result["gold"] is not None:
        task["gold"] = result["gold"]
    return task
