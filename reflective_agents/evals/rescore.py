"""Measures the answers of a finished run anew, by the equality of today."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from reflective_agents.environments.base import Environment, Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.description import scored_by
from reflective_agents.evals.results import Attempt, Result, read_run
from reflective_agents.evals.scorers import Scorer, ScorerLike, resolve_scorer
from reflective_agents.evals.scoring import Scoring, fill_in
from reflective_agents.evals.store import Store
from reflective_agents.evals.summary import Summary, summarise
from reflective_agents.nodes.memo import each_to_its_end
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, Misuse, ModelFailed
from reflective_agents.state.secrets import redacted

AT_ONCE = 8
"""Answers that are scored at once, where a model grades."""


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
    scorer: ScorerLike = None,
) -> Rescored:
    """Score every answer of a run anew, and keep the new scores beside the old ones, of which the later ones count.
    Nothing is kept unless all of them can be scored.

    Args:
        folder: The folder of the run.
        tasks: The tasks by id; None to take question and right answer from the results.
        environment: Whose tasks they are; None for the one that the run names.
        unsafe_code: Whether programs may run as plain processes where there is no sandbox.
        scorer: What scores them now, as for `evaluate`; None for what has scored them before.

    Raises:
        Misuse: if the folder holds no run or is in use, or the answers cannot be scored without the data set of the
            run, or with this one.
    """
    about, results = await asyncio.to_thread(read_run, folder)
    environment = environment or resolve_environment(about["environment"], unsafe_code=unsafe_code)
    name = about.get("scorer") if scorer is None else scorer
    settings = about["settings"]
    context = Context(model=settings.get("judge_model") or settings.get("model"))
    scoring = resolve_scorer(name, environment, context, reads=settings.get("environment") is None)
    if environment.scores_by_data and tasks is None and not scoring.sees_gold_only:
        raise Misuse(f"answers of {environment.name} are measured by the data of their tasks: add --dataset FILE")
    if tasks is not None:
        _check_same(tasks, results, about["dataset"])
    store = await asyncio.to_thread(Store, folder, None)
    try:
        before = await asyncio.to_thread(summarise, about, [*results.values()])
        free, new = asyncio.Semaphore(AT_ONCE), dict[str, Result]()

        async def work(id: str, result: Result) -> None:
            async with free:
                new[id] = await scored(scoring, (tasks or {}).get(id) or _task(result), result)

        await each_to_its_end([work(id, result) for id, result in results.items()])
        # Only once all are scored: figures of two scorers would make no sense together.
        store.describe(scored_by(about, name, scoring, environment))
        changed = [id for id, result in results.items() if new[id] != result]
        for id in changed:
            await asyncio.to_thread(store.append, new[id])
        return Rescored(before, await asyncio.to_thread(summarise, store.about, store.results.values()), changed)
    finally:
        await asyncio.to_thread(store.close)


def _check_same(tasks: Mapping[str, Task], results: Mapping[str, Result], dataset: str) -> None:
    """Refuse tasks that are not those of the results: an id may be no more than a place in a file."""
    for name, result in results.items():
        if name not in tasks:
            raise Misuse(f"the data set does not hold task {name}: give the one of the run, {dataset}")
        if tasks[name]["question"] != result["question"]:
            raise Misuse(f"task {name} of the data set is another question: give the one of the run, {dataset}")


async def scored(scorer: Scorer, task: Task, result: Result) -> Result:
    """Return a result with the scores that its answers have now. One that cannot be graded is not measured, and its
    error says why."""
    if result["correct"] is None and not scorer.measurable(task):
        return result
    correct = False if scorer.measurable(task) else None
    new = result.copy()
    new.pop("extracted", None)
    new.pop("grading", None)
    new["scores"], new["correct"] = {}, correct
    if result["answer"] is None or correct is None:
        return new
    scoring = Scoring(scorer, task)
    # A task with an outcome has crashed, if it has, only when its answer was scored.
    new["error"] = None if result["outcome"] else result["error"]
    try:
        await fill_in(new, scoring, result["answer"])
        new["trials"] = await _attempts(scoring, result["trials"])
    except (LimitReached, ModelFailed) as error:
        new["scores"], new["correct"] = {}, None
        new["error"] = redacted(f"{type(error).__name__}: {error}")
    if scoring.usage:
        new["grading"] = scoring.usage
    return new


async def _attempts(scoring: Scoring, trials: list[Attempt]) -> list[Attempt]:
    """Return the trials with their new scores.

    Which of the earlier trials was the best is not stored: it is the last that was as correct then as the best.
    """
    attempts: list[Attempt] = []
    last: dict[bool, Attempt] = {}
    for trial in trials:
        last[trial["correct"]] = trial
        best = last.get(trial["best_correct"], trial)
        now, then = await scoring.is_correct(trial["answer"]), await scoring.is_correct(best["answer"])
        attempts.append({**trial, "correct": now, "best_correct": then})
    return attempts


def _task(result: Result) -> Task:
    task = Task(id=result["id"], question=result["question"])
    if result["gold"] is not None:
        task["gold"] = result["gold"]
    return task
