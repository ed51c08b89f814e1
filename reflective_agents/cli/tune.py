"""`reflect tune`: the prompts of a strategy, improved on a data set, and measured on tasks that tuning never saw."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from langchain_core.language_models import BaseChatModel

from reflective_agents.cli.compare import compare_runs
from reflective_agents.cli.database import open_store
from reflective_agents.cli.eval import ANSWERED, FAILED, INTERRUPTED, Evaluation, command_line, settings_of_runs
from reflective_agents.cli.options import flag_of
from reflective_agents.cli.output import say
from reflective_agents.cli.signals import run_until_signal
from reflective_agents.cli.tally import Tally, counting
from reflective_agents.cli.threads import load
from reflective_agents.evals.budget import Budget
from reflective_agents.evals.compare import Comparison
from reflective_agents.evals.datasets import load_dataset
from reflective_agents.evals.results import RUN, Result, failed, why_failed
from reflective_agents.evals.run import evaluate, spare_garbage_collection
from reflective_agents.evals.runner import Runner, Words
from reflective_agents.evals.summary import CONFIDENCE
from reflective_agents.evals.tuned_prompts import are_written, shipped, write_prompts
from reflective_agents.evals.tuning import Parts, split, tune
from reflective_agents.models.cache import open_cache
from reflective_agents.models.prices import check_price
from reflective_agents.models.providers import close_models, expect_many_calls, get_model
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, Misuse, ModelFailed, reason_of
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.prices import table_of

LONGEST_PROMPT = 4096
"""Tokens of a reply of the model that writes prompts."""


@dataclass(frozen=True)
class Tuning:
    """What the user asks for; `settings` holds only those that the user set."""

    strategy: str
    dataset: Path
    names: list[str]
    settings: JsonObject = field(default_factory=dict)
    author: str | None = None
    runs: int = 200
    out: str = "tuned"
    form: str | None = None
    limit: int | None = None
    shuffle: int | None = None
    concurrency: int = 4
    max_total_cost: float | None = None
    budget_tokens: int | None = None
    as_json: bool = False
    SHIPPED: ClassVar[str] = "shipped"
    TUNED: ClassVar[str] = "tuned"

    @property
    def prompts(self) -> Path:
        """The folder of the prompts that were found."""
        return self.folder / "prompts"

    @property
    def folder(self) -> Path:
        """The folder of everything."""
        return Path(self.out)

    def command(self) -> str:
        """Return the command that resumes this."""
        options = {
            "--prompt": self.names,
            "--author": self.author,
            "--runs": self.runs,
            "--out": self.out,
            "--format": self.form,
            "--limit": self.limit,
            "--shuffle": self.shuffle,
            "--concurrency": self.concurrency,
            "--max-total-cost": self.max_total_cost,
            "--budget-tokens": self.budget_tokens,
            "--json": self.as_json or None,
            **{flag_of(name): value for name, value in self.settings.items()},
        }
        return command_line("reflect", "tune", self.strategy, str(self.dataset), **options)


def run(tuning: Tuning) -> int:
    """Tune, or go on with it.

    Returns:
        The exit code: 1 if the budget did not suffice.

    Raises:
        Misuse: if it cannot be carried out.
    """
    parts = split(load_dataset(tuning.dataset, form=tuning.form, limit=tuning.limit, seed=tuning.shuffle))
    for name in tuning.names:
        shipped(name)
    try:
        better = run_until_signal(lambda: _tune(tuning, parts))
    except KeyboardInterrupt:
        say(f"interrupted; go on with: {tuning.command()}")
        return INTERRUPTED
    except LimitReached as reached:
        say(f"stopped: {reached}; to go on, raise it: {tuning.command()}")
        return FAILED
    except ModelFailed as failure:
        say(f"stopped: {failure}; once that is mended, go on with: {tuning.command()}")
        return FAILED
    if better:
        folders = [str(tuning.folder / name) for name in (tuning.SHIPPED, tuning.TUNED)]
        say(_advice(tuning, compare_runs(folders, tuning.as_json)))
    else:
        say("no better prompts were found: the shipped ones stay")
    return ANSWERED


def _advice(tuning: Tuning, comparison: Comparison) -> str:
    """Say whether the prompts found are worth using, by the tasks held out."""
    versus = comparison["runs"][1]["versus_first"]
    assert versus is not None
    if versus["wins"] <= versus["losses"]:
        return f"on the tasks held out the prompts found do no better: keep the shipped ones, not {tuning.prompts}"
    use = command_line("reflect", "run", tuning.strategy, **{"--prompts": tuning.prompts})
    chance = ", which may be chance: measure them on more tasks" if versus["p_value"] > 1 - CONFIDENCE else ""
    won, of = versus["wins"] - versus["losses"], comparison["shared"]
    return f"they solve {won:,} more of the {of:,} tasks held out{chance}; use them with: {use} QUESTION"


async def _tune(tuning: Tuning, parts: Parts) -> bool:
    """Measure the shipped prompts, look for better ones, and measure these; tell whether there were any."""
    say(_announced(tuning, parts))
    expect_many_calls()
    evaluation = Evaluation(tuning.strategy, tuning.dataset, tuning.settings, max_total_cost=tuning.max_total_cost)
    try:
        context = await settings_of_runs(evaluation, parts.held_out)
        if context.prompts:
            raise Misuse("tuning begins with the prompts as they are shipped: leave --prompts out")
        if context.experience is not None:
            raise Misuse("what runs learn would change what the prompts are measured by: leave --experience out")
        author = await _author(tuning, context)
        budget = Budget(tuning.budget_tokens, tuning.max_total_cost)
        async with open_store(context) as store:
            graph = load(tuning.strategy, store=store)
            spare_garbage_collection()
            with _writable(tuning.folder):
                tuning.folder.mkdir(parents=True, exist_ok=True)
            cache = open_cache(tuning.folder / "replies.sqlite")
            with budget.held(tuning.folder, []):
                runner = Runner(graph, parts.held_out, context, budget, at_once=tuning.concurrency)
                before = await _measure(runner, tuning.folder / tuning.SHIPPED)
                if all(map(failed, before)):
                    raise ModelFailed(f"no task held out could be run ({why_failed(before[0])})")
                say(_estimate(before, tuning.runs + len(before)))
                words = await _search(tuning, replace(runner, cache=cache), parts, author)
                is_better = words != {name: shipped(name) for name in tuning.names}
                with _writable(tuning.folder):
                    _keep(tuning, words if is_better else {})
                if not is_better:
                    return False
                tuned = replace(runner, context=context.model_copy(update={"prompts": str(tuning.prompts)}))
                await _measure(tuned, tuning.folder / tuning.TUNED)
                return True
    finally:
        await close_models()


async def _author(tuning: Tuning, context: Context) -> BaseChatModel:
    """Return the model that writes prompts."""
    author = get_model(
        tuning.author or context.model, max_answer_tokens=LONGEST_PROMPT, call_timeout=context.call_timeout
    )
    if tuning.max_total_cost is not None:
        await check_price(author, table_of(context.prices), required=True)
    return author


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Refuse a folder that the body cannot write to."""
    try:
        yield
    except OSError as error:
        raise Misuse(f"{folder} cannot be written ({reason_of(error)}): choose another --out") from error


def _keep(tuning: Tuning, words: Words) -> None:
    """Write the prompts that were found. What earlier ones have scored goes first: it says nothing of these."""
    if are_written(words, tuning.prompts):
        return
    if (tuning.folder / tuning.TUNED / RUN).exists():
        shutil.rmtree(tuning.folder / tuning.TUNED)
    if words:
        write_prompts(words, tuning.prompts)
    else:
        shutil.rmtree(tuning.prompts)


async def _measure(runner: Runner, folder: Path) -> list[Result]:
    """Run the tasks held out that have no result yet, or whose run failed, and return all results."""
    tally = Tally(len(runner.dataset.tasks))
    with counting(tally) as add:
        await evaluate(
            runner.graph,
            runner.dataset,
            context=runner.context,
            out=folder,
            concurrency=runner.at_once,
            on_result=add,
            retry_failed=True,
            elsewhere=runner.run,
        )
    results = list(tally.results.values())
    if count := sum(map(failed, results)):
        runs = f"{count:,} of {len(results):,} runs"
        say(f"note: {runs} crashed or failed, and count as wrong; the same command repeats them")
    return results


async def _search(tuning: Tuning, runner: Runner, parts: Parts, author: BaseChatModel) -> Words:
    """Let GEPA look for better prompts, and say how far it is."""

    def progress(runs: int, best: float) -> None:
        tokens = runner.budget.total()["budget_tokens"]
        say(f"{runs:,} of {tuning.runs:,} runs, {tokens:,} tokens; best score where candidates are chosen: {best:.1%}")

    return await tune(runner, parts, tuning.names, author=author, runs=tuning.runs, on_progress=progress)


def _announced(tuning: Tuning, parts: Parts) -> str:
    """Say what is going to happen."""
    held_out = len(parts.held_out.tasks)
    parted = f"{len(parts.learn):,} tasks to learn from, {len(parts.choose):,} to choose by, {held_out:,} held out"
    runs = f"about {tuning.runs + 2 * held_out:,} runs: {tuning.runs:,} to tune, 2 x {held_out:,} to measure"
    return f"{tuning.strategy} on {parted}; {runs}; in {tuning.out}"


def _estimate(results: Sequence[Result], more: int) -> str:
    """Say what is to come, by what the first runs have cost."""
    usages = [result["usage"] for result in results if result["usage"]]
    if not usages:
        return "what a run costs is not known: none of the first ones has ended"
    tokens = fmean(usage["total_tokens"] for usage in usages)
    dollars = fmean(usage.get("cost", 0.0) for usage in usages)
    price = f" and ${dollars * more:,.2f}" if dollars else ""
    return (
        f"a run takes {tokens:,.0f} tokens: tuning will take about {tokens * more:,.0f} tokens{price}, and the author's"
    )
