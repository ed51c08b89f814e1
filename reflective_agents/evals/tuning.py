"""Tunes the prompts of a strategy with GEPA (Agrawal et al. 2025, arXiv 2507.19457) on the tasks of a data set.

Tasks run and answers are measured as by `reflect eval`. A third of the tasks is to learn from, a third chooses among
the candidates, and a third, which GEPA never sees, is held out: what it measures is the outcome.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from gepa.api import optimize
from gepa.core.callbacks import BudgetUpdatedEvent, GEPACallback, ValsetEvaluatedEvent
from gepa.core.result import GEPAResult
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from reflective_agents.environments.base import Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.gepa_adapter import Adapter, Loop
from reflective_agents.evals.results import Result
from reflective_agents.evals.runner import Runner, Words
from reflective_agents.evals.tuned_prompts import shipped, without_ends
from reflective_agents.models.cache import caching
from reflective_agents.models.calls import request
from reflective_agents.models.meter import Meter
from reflective_agents.nodes.asking.wording import noting_prompts
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.run import NOTHING_SPENT

LONGEST_CALL = 604_800
"""Seconds that the author may take, repeats and all: what bounds a run says nothing of them."""
FEWEST = 6
"""Tasks of a data set: two of each part."""
OnProgress = Callable[[int, float], None]
"""Is told how many runs were made so far, and the best mean score of the tasks that choose, 0..1."""


class Parts(NamedTuple):
    """A data set in three, each with every third task."""

    learn: list[Task]
    choose: list[Task]
    held_out: Dataset


def split(dataset: Dataset) -> Parts:
    """Part a data set.

    Raises:
        Misuse: if it has too few tasks, or some that nothing measures.
    """
    environment = resolve_environment(dataset.environment)
    if unmeasured := len(dataset.tasks) - sum(map(environment.measurable, dataset.tasks)):
        tasks = f"{unmeasured:,} of the {len(dataset.tasks):,} tasks of {dataset.name}"
        raise Misuse(f"{tasks} have no right answer, which tuning goes by: add it, or leave them out")
    if len(dataset.tasks) < FEWEST:
        raise Misuse(f"{dataset.name} has {len(dataset.tasks)} tasks: tuning needs {FEWEST} or more, better 60")
    learn, choose, held_out = (dataset.tasks[first::3] for first in range(3))
    return Parts(learn, choose, replace(dataset, tasks=held_out))


class _Progress:
    """Hears of GEPA how far it is."""

    def __init__(self, tell: OnProgress) -> None:
        self._tell = tell
        self._best = 0.0

    def on_valset_evaluated(self, event: ValsetEvaluatedEvent) -> None:
        self._best = max(self._best, event["average_score"])

    def on_budget_updated(self, event: BudgetUpdatedEvent) -> None:
        self._tell(event["metric_calls_used"], self._best)


class _Log:
    """GEPA's log, which would go to stdout."""

    def log(self, message: str) -> None:
        logging.getLogger(__name__).debug(message)


async def _write(author: BaseChatModel, prompt: str, context: Context) -> str:
    """Have the author write new prompts, in a run of its own."""
    settings = Context(prices=context.prices, call_timeout=context.call_timeout, max_seconds=LONGEST_CALL)
    reply, *_ = await request(author, [HumanMessage(prompt)], Meter(settings, NOTHING_SPENT))
    return reply.text


async def tune(
    runner: Runner,
    parts: Parts,
    names: Sequence[str],
    *,
    author: BaseChatModel,
    runs: int,
    on_progress: OnProgress = lambda runs, best: None,
) -> Words:
    """Return the best prompts that GEPA finds.

    Args:
        runner: Runs the tasks.
        parts: The tasks, with their right answers.
        names: The templates that may change.
        author: The model that reads what went wrong, right answers among it, and writes new prompts.
        runs: How many runs of a task it may take, about: a candidate is measured to its end.
        on_progress: Called from another thread.

    Raises:
        LimitReached: if the runner's budget is spent.
        Misuse: if no run has used one of the templates as it is shipped.
        ModelFailed: if the author gives no reply.
    """
    loop = Loop()
    parted = {name: without_ends(shipped(name)) for name in names}

    def whole(candidate: Words) -> Words:
        prompts: Words = {}
        for name, text in candidate.items():
            before, _, after = parted[name]
            prompts[name] = f"{before}{text}{after}"
        return prompts

    def search() -> Mapping[str, str] | str:
        found: GEPAResult[Result, int] = optimize(
            seed_candidate={name: text for name, (_, text, _) in parted.items()},
            trainset=parts.learn,
            valset=parts.choose,
            adapter=Adapter(runner, loop, whole=whole, used=used),
            # GEPA's own prompts are texts.
            reflection_lm=lambda prompt: loop.wait(lambda: _write(author, str(prompt), runner.context)),
            max_metric_calls=runs,
            callbacks=[cast(GEPACallback, _Progress(on_progress))],  # it calls what there is
            logger=_Log(),
        )
        loop.check()
        return found.best_candidate

    try:
        # The cache is around all that the author is asked, or the same prompt had the same reply each time.
        with caching(runner.cache), noting_prompts() as used:
            best = await asyncio.to_thread(search)
    finally:
        loop.stop()
    assert isinstance(best, Mapping)
    return whole(dict(best))
