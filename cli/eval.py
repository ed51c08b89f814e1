"""`reflect eval`: a strategy on every task of a data set, in a folder that outlives the process."""

import asyncio
import json
import shlex
import signal
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cli.checks import check
from cli.database import home_folder
from cli.options import flag_of, make_context
from cli.output import print_table, say
from cli.store import open_store
from cli.strategies import load, settings_of
from cli.tally import Tally, counting
from evals.datasets import Dataset, load_dataset
from evals.extras import PAGE, STATISTICS, need
from evals.report import facts, page
from evals.results import failed, folder_name
from evals.run import about, evaluate
from evals.summary import Summary
from models.providers import close_models
from state.context import Context
from state.errors import Misuse
from tools.sandbox import choose_enclosure

ANSWERED, FAILED, INTERRUPTED = 0, 1, 130


@dataclass(frozen=True)
class Evaluation:
    """What the user asks for; `settings` holds only what was given."""

    strategy: str
    dataset: Path
    settings: dict[str, Any] = field(default_factory=dict)
    form: str | None = None
    limit: int | None = None
    shuffle: int | None = None
    concurrency: int = 4
    out: Path | None = None
    html: Path | None = None
    retry_failed: bool = False
    as_json: bool = False

    def command(self) -> str:
        """The command that goes on with this evaluation."""
        words = ["reflect", "eval", self.strategy, str(self.dataset)]
        options = {
            "--format": self.form,
            "--limit": self.limit,
            "--shuffle": self.shuffle,
            "--concurrency": self.concurrency if self.concurrency != Evaluation.concurrency else None,
            "--out": self.out,
            "--html": self.html,
            "--retry-failed": self.retry_failed or None,
            "--json": self.as_json or None,
            **{flag_of(name): value for name, value in self.settings.items()},
        }
        for flag, value in options.items():
            if isinstance(value, bool):
                words.append(flag if value else f"--no-{flag[2:]}")
            elif value is not None:
                words += [flag, str(value)]
        return shlex.join(words)


def run(asked: Evaluation) -> int:
    """Carry out an evaluation, or go on with it.

    Returns:
        The exit code: 1 if no task could be answered.

    Raises:
        Misuse: if it cannot be carried out.
    """
    need(*STATISTICS, *(PAGE if asked.html else ()))
    dataset = load_dataset(asked.dataset, form=asked.form, limit=asked.limit, seed=asked.shuffle)
    tally = Tally(len(dataset.tasks))
    try:
        summary = asyncio.run(_evaluate(asked, dataset, tally))
    except (KeyboardInterrupt, asyncio.CancelledError):
        say(f"interrupted with {len(tally.results):,} of {tally.total:,} results; go on with: {asked.command()}")
        return INTERRUPTED
    return _report(asked, summary, tally)


async def _evaluate(asked: Evaluation, dataset: Dataset, tally: Tally) -> Summary:
    """Check everything, and only then write to the folder. SIGTERM is treated like Ctrl-C."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):  # on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        context = await _settings(asked, dataset)
        folder = asked.out or runs_folder() / folder_name(about(asked.strategy, context, dataset))
        say(f"{asked.strategy} on {len(dataset.tasks):,} tasks of {dataset.name} ({dataset.environment}), in {folder}")
        async with open_store(context) as store:
            with counting(tally) as tell:
                return await evaluate(
                    load(asked.strategy, store=store),
                    dataset,
                    context=context,
                    out=folder,
                    concurrency=asked.concurrency,
                    on_result=tell,
                    retry_failed=asked.retry_failed,
                )
    finally:
        await close_models()


async def _settings(asked: Evaluation, dataset: Dataset) -> Context:
    """The settings of every run, with the model and the search that were chosen.

    Raises:
        Misuse: if they do not fit, or the tasks cannot be run or measured with them.
    """
    schema = settings_of(asked.strategy)
    given = dict(asked.settings)
    if "environment" in schema.model_fields and dataset.environment != "plain":
        given.setdefault("environment", dataset.environment)
    context = make_context(schema, given)
    if getattr(context, "critic", None) == "human":
        raise Misuse("--critic human: nobody is asked during an evaluation; choose model or checks")
    if dataset.environment == "programming":
        await choose_enclosure(getattr(context, "unsafe_code", False))
    choice = await check(context, given)
    for line in choice.lines():
        say(line)
    if "max_actions" in schema.model_fields and lacks_articles(dataset) and getattr(context, "docstore", None) is None:
        say("note: the tasks bring no articles, so no search finds any: --docstore wikipedia, a folder or a JSONL file")
    chosen = {name: value for name, value in (("model", choice.model), ("search", choice.search)) if value}
    return context.model_copy(update=chosen)


def lacks_articles(dataset: Dataset) -> bool:
    """Whether tasks that are answered with articles bring none."""
    needed = dataset.environment in ("questions", "fever")
    return needed and not any(task.get("data", {}).get("context") for task in dataset.tasks)


def _report(asked: Evaluation, summary: Summary, tally: Tally) -> int:
    if asked.html:
        _write(asked.html, page(summary, tally.results.values()))
    if asked.as_json:
        print(json.dumps(summary))
    else:
        print_table(("figure", "value"), facts(summary))
    if any(failed(result) for result in tally.results.values()):
        say(f"run the tasks again that crashed or failed: {replace(asked, retry_failed=True).command()}")
    return ANSWERED if tally.answered else FAILED


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8", errors="replace")
    except OSError as error:
        raise Misuse(f"--html: {file} cannot be written ({error.strerror or error})") from error
    say(f"page: {file}")


def runs_folder() -> Path:
    """The folder in which runs are kept that were not told where to."""
    return home_folder().expanduser() / "evals"
