"""Tunes the prompts of a strategy with GEPA (Agrawal et al. 2025, arXiv 2507.19457) on the tasks of a data set.

Tasks run and answers are measured as by `reflect eval`. A third of the tasks is to learn from, a third chooses among
the candidates, and a third, which GEPA never sees, is held out: what it measures is the outcome.
"""

import asyncio
import concurrent.futures
import logging
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from gepa.api import optimize
from gepa.core.adapter import EvaluationBatch, ProposalFn
from gepa.core.callbacks import BudgetUpdatedEvent, GEPACallback, ValsetEvaluatedEvent
from gepa.core.result import GEPAResult
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate, SystemMessagePromptTemplate

from reflective_agents.environments.base import Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.budget import Budget
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.results import Result
from reflective_agents.evals.run import Finished, Graph, attempt
from reflective_agents.models.cache import Cache, caching
from reflective_agents.models.calls import request
from reflective_agents.models.meter import Meter
from reflective_agents.nodes.asking.wording import noting_prompts, replacements, templates
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, Misuse
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.text.spelling import similar_names

LONGEST_CALL = 604_800
"""Seconds that the author may take, repeats and all: what bounds a run says nothing of them."""
FEWEST = 6
"""Tasks of a data set: two of each part."""
Words = dict[str, str]
"""Texts by the names of templates, as the setting `prompts` takes them."""
Batch = EvaluationBatch[str, Result]
"""What came of some tasks, and the tasks in words."""
OnProgress = Callable[[int, float], None]
"""Is told how many runs were made so far, and the best mean score of the tasks that choose, 0..1."""
T = TypeVar("T")
_PLACEHOLDER = r"\{[a-z_]+\}"
_ENDS = re.compile(rf"((?:{_PLACEHOLDER}\s*)*)(.*?)((?:\s*{_PLACEHOLDER})*\s*)", re.DOTALL)


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


@dataclass
class Runner:
    """Runs tasks with settings, within a budget.

    Attributes:
        graph: The strategy, compiled without a checkpointer.
        dataset: Whose environment measures the answers.
        context: The settings of every run.
        budget: What all runs may spend together.
        cache: What was answered before, by which a search that was stopped goes on: it begins anew, and pays for
            nothing twice. None for none.
        at_once: How many tasks are under way at once, from 1.
    """

    graph: Graph
    dataset: Dataset
    context: Context
    budget: Budget = field(default_factory=Budget)
    cache: Cache | None = None
    at_once: int = 4

    async def run(self, task: Task, prompts: Words | None = None) -> Finished:
        """Run a task, with other prompts if there are some.

        Raises:
            LimitReached: if the budget has cut it short: what came of it says nothing.
        """
        context = self.context
        if prompts:
            context = type(context).model_validate({**dict(context), "prompts": prompts})
        with self.budget.task() as cut:
            finished = await attempt(self.graph, self.dataset.environment, task, context, self.cache)
        if cut.short and self.budget.reached:
            raise LimitReached(self.budget.reached)
        return finished

    async def run_all(self, tasks: Sequence[Task], prompts: Words) -> list[Result]:
        """Run tasks, some of them at once; one that is there twice, as where GEPA fills up a batch, runs once."""
        by_id, free = {task["id"]: task for task in tasks}, asyncio.Semaphore(self.at_once)

        async def run(task: Task) -> Result:
            async with free:
                return (await self.run(task, prompts)).result

        try:
            async with asyncio.TaskGroup() as group:
                running = {name: group.create_task(run(task)) for name, task in by_id.items()}
        except ExceptionGroup as faults:
            raise faults.exceptions[0] from faults
        return [running[task["id"]].result() for task in tasks]


class Loop:
    """Lets a thread wait for coroutines of an event loop, until it is stopped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waits_for: concurrent.futures.Future[Any] | None = None
        self._stopped = False

    def wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what a coroutine returns. Where one has raised, no other begins.

        Raises:
            concurrent.futures.CancelledError: if this was stopped.
        """
        self.check()
        future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        self._waits_for = future
        if self._stopped:
            future.cancel()
        return future.result()

    def check(self) -> None:
        """Raise again what the last coroutine has raised: GEPA passes over an author that fails."""
        if self._waits_for:
            self._waits_for.result()

    def stop(self) -> None:
        """Let the thread wait for nothing more."""
        self._stopped = True
        if self._waits_for:
            self._waits_for.cancel()


@dataclass
class Adapter:
    """What GEPA has to know of the system that it tunes: how well a candidate does, and what went wrong."""

    runner: Runner
    loop: Loop
    propose_new_texts: ProposalFn | None = None
    """GEPA's own way to propose a text is used."""
    whole: Callable[[Words], Words] = lambda candidate: candidate
    """Makes prompts of the texts of a candidate."""
    used: set[str] | None = None
    """The templates that runs so far have used: those of a candidate must be among them. None if nobody notes them."""

    def evaluate(self, batch: list[Task], candidate: Words, capture_traces: bool = False) -> Batch:
        """Run tasks with the prompts of a candidate. A prompt that cannot be used scores 0, and its result says why.

        Raises:
            Misuse: if no run has used one of the templates.
        """
        results = self.loop.wait(lambda: self.runner.run_all(batch, self.whole(candidate)))
        if self.used is not None and (unused := candidate.keys() - self.used):
            raise Misuse(f"no run has used {_listed(unused)}: name some of {_listed(self.used)}")
        environment = resolve_environment(self.runner.dataset.environment)
        scores = [result["scores"].get(environment.figure, 0.0) for result in results]
        asked_for = [environment.request(task) for task in batch]
        return Batch(outputs=results, scores=scores, trajectories=asked_for if capture_traces else None)

    def make_reflective_dataset(
        self, candidate: Words, eval_batch: Batch, components_to_update: list[str]
    ) -> dict[str, list[dict[str, str]]]:
        """Say in words what came of each task, and which placeholders a text has to keep."""
        batch = zip(eval_batch.trajectories or [], eval_batch.outputs, eval_batch.scores, strict=True)
        reports = [_report(*each) for each in batch]
        return {name: [*reports, *_rules(candidate[name])] for name in components_to_update}


def _report(task: str, result: Result, score: float) -> dict[str, str]:
    outcome = result["outcome"]
    why = result["error"] or (outcome["reason"] if outcome else "")
    right = f" The right answer is: {result['gold']}." if result["gold"] is not None else ""
    feedback = f"Score {score:g}.{right} {why}".rstrip()
    return {"Inputs": task, "Generated Outputs": result["answer"] or "", "Feedback": feedback}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _rules(text: str) -> list[dict[str, str]]:
    keep = " ".join(re.findall(_PLACEHOLDER, text))
    return [{"Rule": f"Keep these placeholders as they are: {keep}"}] if keep else []


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


def shipped(name: str) -> str:
    """Return the text of a template that a candidate replaces: of a chat its system message.

    Raises:
        Misuse: if there is no such template, or its text cannot be given as a prompt.
    """
    if name not in templates():
        similar = ", ".join(similar_names(name, templates(), 3, 0.4))
        hint = f"; similar: {similar}" if similar else ""
        raise Misuse(f"there is no prompt {name}: see docs/parts.md{hint}")
    text = _text_of(templates()[name])
    replacements({name: text})
    return text


def _text_of(template: object) -> str:
    match template:
        case ChatPromptTemplate(messages=[SystemMessagePromptTemplate(prompt=PromptTemplate() as system), *_]):
            return system.template
        case _:
            return str(template)


def without_ends(prompt: str) -> tuple[str, str, str]:
    """Part a prompt into the placeholders that it begins with, its text, and those that it ends with: an author need
    not know of these, and small models take them for parts of the task."""
    parts = _ENDS.fullmatch(prompt)
    if parts is None or not parts[2]:
        return "", prompt, ""
    return parts[1], parts[2], parts[3]


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

    async def write(prompt: str) -> str:
        context = runner.context
        settings = Context(prices=context.prices, call_timeout=context.call_timeout, max_seconds=LONGEST_CALL)
        reply, *_ = await request(author, [HumanMessage(prompt)], Meter(settings, NOTHING_SPENT))
        return reply.text

    def search() -> Mapping[str, str] | str:
        found: GEPAResult[Result, int] = optimize(
            seed_candidate={name: text for name, (_, text, _) in parted.items()},
            trainset=parts.learn,
            valset=parts.choose,
            adapter=Adapter(runner, loop, whole=whole, used=used),
            reflection_lm=lambda prompt: loop.wait(lambda: write(str(prompt))),  # GEPA's own prompts are texts
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


def _files(words: Words, folder: Path) -> dict[Path, bytes]:
    return {folder / f"{name}.txt": f"{text}\n".encode() for name, text in words.items()}


def are_written(words: Words, folder: Path) -> bool:
    """Tell whether a folder holds these prompts and no others."""
    wanted = _files(words, folder)
    return set(folder.glob("*.txt")) == set(wanted) and all(starmap(_holds, wanted.items()))


def _holds(file: Path, text: bytes) -> bool:
    """Tell whether a file holds a text; what is no file, or larger, is not read."""
    return file.is_file() and file.stat().st_size == len(text) and file.read_bytes() == text


def write_prompts(words: Words, folder: Path) -> None:
    """Write prompts as the files that the setting `prompts` reads, instead of those that are there."""
    for file in folder.glob("*.txt"):
        file.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in _files(words, folder).items():
        file.write_bytes(text)
