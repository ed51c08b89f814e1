"""`reflect eval`: a strategy on every task of a data set, in a folder that outlives the process."""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from reflective_agents.cli.checks import check, need_for_figures, need_for_frames, need_for_statistics
from reflective_agents.cli.database import open_store
from reflective_agents.cli.exports import Export, check_folders, check_targets, write, write_each
from reflective_agents.cli.options import flag_of, make_context
from reflective_agents.cli.output import print_table, say
from reflective_agents.cli.run_folders import cache_file, note_run, runs_folder
from reflective_agents.cli.signals import run_until_signal
from reflective_agents.cli.tally import Tally, counting
from reflective_agents.cli.threads import load
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.budget import SPENT, Budget
from reflective_agents.evals.datasets import Dataset, load_dataset
from reflective_agents.evals.description import about
from reflective_agents.evals.figures import Publication, write_figures
from reflective_agents.evals.report import curves, facts, page
from reflective_agents.evals.results import About, failed, read_run, why_failed
from reflective_agents.evals.run import Run, evaluate, spare_garbage_collection
from reflective_agents.evals.scorers import ByModel, resolve_scorer
from reflective_agents.evals.store import folder_of, name_of_run
from reflective_agents.evals.summary import Summary
from reflective_agents.evals.worker import Job
from reflective_agents.evals.workers import local_workers
from reflective_agents.models.cache import open_cache
from reflective_agents.models.prices import check_price
from reflective_agents.models.providers import close_models, expect_many_calls, get_model
from reflective_agents.nodes.acting.agent import environment_of
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.extras import need
from reflective_agents.state.families import TaskContext
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.prices import table_of
from reflective_agents.state.settings import settings_of

ANSWERED, FAILED, INTERRUPTED = 0, 1, 130


@dataclass(frozen=True)
class Evaluation:
    """What the user asks for; `settings` holds only those that the user set."""

    strategy: str
    dataset: Path
    settings: JsonObject = field(default_factory=dict)
    form: str | None = None
    limit: int | None = None
    shuffle: int | None = None
    concurrency: int = 4
    out: Path | None = None
    html: Path | None = None
    export: Path | None = None
    retry_failed: bool = False
    cache: bool = False
    max_total_cost: float | None = None
    budget_tokens: int | None = None
    workers: int | None = None
    ray: str | None = None
    scorer: str | None = None
    figures: Path | None = None
    as_json: bool = False

    @property
    def has_budget(self) -> bool:
        """Whether all tasks together may spend so much only."""
        return self.budget_tokens is not None or self.max_total_cost is not None

    def command(self) -> str:
        """Return the command that resumes this evaluation."""
        options = {
            "--format": self.form,
            "--limit": self.limit,
            "--shuffle": self.shuffle,
            "--scorer": self.scorer,
            "--concurrency": self.concurrency if self.concurrency != Evaluation.concurrency else None,
            "--out": self.out,
            "--html": self.html,
            "--export": self.export,
            "--figures": self.figures,
            "--retry-failed": self.retry_failed or None,
            "--cache": self.cache or None,
            "--max-total-cost": self.max_total_cost,
            "--budget-tokens": self.budget_tokens,
            "--workers": self.workers,
            "--ray": self.ray,
            "--json": self.as_json or None,
            **{flag_of(name): value for name, value in self.settings.items()},
        }
        return command_line("reflect", "eval", self.strategy, str(self.dataset), **options)


def command_line(*words: str, **options: object) -> str:
    """Write a command with its options by their flags; a list is a flag repeated, None is left out."""
    flags: list[str] = []
    for flag, value in options.items():
        if isinstance(value, bool):
            flags.append(flag if value else f"--no-{flag[2:]}")
        elif value is not None:
            values = value if isinstance(value, list) else [value]
            for each in values:
                flags += [flag, str(each)]
    return shlex.join([*words, *flags])


def run(request: Evaluation) -> int:
    """Run an evaluation, or resume it.

    Returns:
        The exit code: 1 if no task could be answered.

    Raises:
        Misuse: if it cannot be carried out.
    """
    check_targets({"--html": request.html, "--export": request.export}, force=True)
    check_folders({"--out": request.out, "--figures": request.figures})
    need_for_statistics()
    if request.export:
        need_for_frames()
    if request.figures:
        need_for_figures()
    dataset = load_dataset(request.dataset, form=request.form, limit=request.limit, seed=request.shuffle)
    tally = Tally(len(dataset.tasks))
    try:
        summary, folder = run_until_signal(lambda: _evaluate(request, dataset, tally))
    except KeyboardInterrupt:
        say(f"interrupted with {len(tally.results):,} of {tally.total:,} results; go on with: {request.command()}")
        return INTERRUPTED
    return _report(request, summary, tally, folder)


async def _evaluate(request: Evaluation, dataset: Dataset, tally: Tally) -> tuple[Summary, Path]:
    """Check everything, and only then write to the folder."""
    expect_many_calls()
    try:
        context = await settings_of_runs(request, dataset)
        description = about(request.strategy, context, dataset, request.scorer)
        folder, name = await _folder(request, description)
        tasks = f"{len(dataset.tasks):,} tasks of {dataset.name} ({dataset.environment_name})"
        alias = f" ({name})" if name else ""
        say(f"{request.strategy} on {tasks}, in {folder}{alias}")
        budget = Budget(request.budget_tokens, request.max_total_cost) if request.has_budget else None
        async with open_store(context) as store, _workers(request, context, dataset, folder) as elsewhere:
            graph = load(request.strategy, store=store)
            spare_garbage_collection()
            with counting(tally) as add:
                summary = await evaluate(
                    graph,
                    dataset,
                    context=context,
                    out=folder,
                    concurrency=request.concurrency,
                    on_result=add,
                    retry_failed=request.retry_failed,
                    cache=open_cache(cache_file()) if request.cache and elsewhere is None else None,
                    budget=budget,
                    scorer=request.scorer,
                    elsewhere=elsewhere,
                )
                if budget:
                    _say_what_is_spent(budget, folder, tally, request)
                return summary, folder
    finally:
        await close_models()


async def _folder(request: Evaluation, description: About) -> tuple[Path, str]:
    """Return the folder of the results, and the name by which a folder of the user's own can be called as well."""
    if request.out:
        return request.out, note_run(request.out, name_of_run(description))
    return await asyncio.to_thread(folder_of, description, runs_folder()), ""


def _say_what_is_spent(budget: Budget, folder: Path, tally: Tally, request: Evaluation) -> None:
    if budget.unreadable:
        say(f"note: {budget.unreadable:,} lines of {folder / SPENT} cannot be read and do not count")
    if budget.reached:
        so_far = f"{len(tally.results):,} of {tally.total:,} results"
        say(f"stopped: {budget.say()}, with {so_far}; to go on, raise it: {request.command()}")


@asynccontextmanager
async def _workers(request: Evaluation, context: Context, dataset: Dataset, folder: Path) -> AsyncIterator[Run | None]:
    """Yield what runs the tasks in other processes; None to run them in this one."""
    if request.workers is None and request.ray is None:
        yield None
        return
    job = _job(request, context, dataset)
    # A file of an earlier session goes on being kept, or a later budget would not know of this one.
    if request.has_budget or (folder / SPENT).exists():
        job["spent"] = str((folder / SPENT).absolute())
    if request.ray is None:
        async with local_workers(job, request.workers or 1) as run:
            yield run
        return
    need("ray", extra="ray", purpose="--ray")
    from reflective_agents.evals.on_ray import ray_workers  # an extra

    async with ray_workers(job, request.ray, request.workers, request.concurrency) as run:
        yield run


def _job(request: Evaluation, context: Context, dataset: Dataset) -> Job:
    """Return what workers need to know.

    Raises:
        Misuse: if it cannot be said to another process.
    """
    if context.remembers:
        raise Misuse("--workers, --ray: runs that remember share one store: leave these options out")
    settings = context.model_dump()
    try:
        json.dumps(settings)
    except TypeError as error:
        raise Misuse(f"--workers, --ray: settings must be plain data ({error}): leave these options out") from error
    cache = str(cache_file().absolute()) if request.cache else None
    return Job(
        strategy=request.strategy,
        settings=settings,
        environment=dataset.environment_name,
        cache=cache,
        scorer=request.scorer,
    )


async def settings_of_runs(request: Evaluation, dataset: Dataset) -> Context:
    """Return the settings of every run, with the model and the web search that were chosen.

    Raises:
        Misuse: if they do not fit, or the tasks cannot be run or measured with them.
    """
    schema = settings_of(request.strategy)
    settings = dict(request.settings)
    if "environment" in schema.model_fields and dataset.environment != PLAIN.name:
        settings.setdefault("environment", dataset.environment)
    context = make_context(schema, settings)
    if getattr(context, "critic", None) == "human":
        raise Misuse("--critic human: nobody is asked during an evaluation; choose model or checks")
    environment = resolve_environment(dataset.environment, unsafe_code=getattr(context, "unsafe_code", False))
    await environment.ready()
    choice = await check(context, settings)
    # Written into the settings: results say which model was run, and a later run on other defaults is another one.
    if choice.model:
        context = context.model_copy(update={"model": choice.model})
    scorer = resolve_scorer(request.scorer, environment, context)
    graders = [scorer.model] if isinstance(scorer, ByModel) else []
    for model in graders:
        get_model(model)
        say(f"graded by: {model}")
    if request.max_total_cost is not None:
        for model in (*choice.models, *graders):
            await check_price(get_model(model), table_of(context.prices), required=True)
    for line in choice.lines():
        say(line)
    if "max_actions" in schema.model_fields:
        note = await advice(dataset, context)
        if note:
            say(f"note: {note}")
    if choice.search and choice.searches:
        context = context.model_copy(update={"search": choice.search})
    return context


async def advice(dataset: Dataset, context: Context) -> str:
    """Return the environment's advice about the tasks; empty if it has none, or no environment is set."""
    environment = await environment_of(context) if isinstance(context, TaskContext) else None
    return environment.advise(dataset.tasks) if environment else ""


def _report(request: Evaluation, summary: Summary, tally: Tally, folder: Path) -> int:
    if request.as_json:
        print(json.dumps(summary))
    else:
        print_table(("figure", "value"), facts(summary))
    results = tally.results.values()
    html, frame, figures = request.html, request.export, request.figures
    writers: list[Callable[[], None]] = []
    if html is not None:  # after the figures, which are paid for
        writers.append(lambda: write([Export("--html", str(html), page(summary, results, folder))], True))
    if frame is not None:
        writers.append(lambda: export(frame, [folder]))
    if figures is not None:
        writers.append(lambda: publish(figures, _publication(request, summary, tally)))
    write_each(writers)
    if first := next(filter(failed, results), None):
        say(f"the first that crashed or failed, {first['id']}: {why_failed(first)}")
        say(f"run the tasks again that crashed or failed: {replace(request, retry_failed=True).command()}")
    return ANSWERED if tally.answered else FAILED


def _publication(request: Evaluation, summary: Summary, tally: Tally) -> Publication:
    caption = (
        f"{request.command()} ({datetime.now(UTC):%Y-%m-%d}, begun {summary['started']}). Intervals: 95 %, Wilson's."
    )
    drawn = curves([tally.results.values()])
    return Publication(("figure", "value"), facts(summary), [summary["strategy"]], drawn, caption)


def publish(folder: Path, publication: Publication) -> None:
    """Write tables and curves to publish, and say so.

    Raises:
        Misuse: if they cannot be drawn, or written.
    """
    need_for_figures()
    say(f"figures: {', '.join(map(str, write_figures(folder, publication)))}")


def export(file: Path, folders: Sequence[Path]) -> None:
    """Write the results of runs into one Parquet file, and say so.

    Raises:
        Misuse: if it cannot be written.
    """
    need_for_frames()
    from reflective_agents.evals.frame import Exported, write_frame  # an extra

    runs: list[Exported] = []
    for folder in folders:
        about, results = read_run(folder)
        runs.append(Exported(folder.name, about, results.values()))
    write_frame(file, runs)
    say(f"export: {file}")
