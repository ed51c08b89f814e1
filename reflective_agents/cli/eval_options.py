"""The command `reflect eval <strategy>`: what can be asked of every evaluation, and the settings of the strategy."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from reflective_agents.cli.options import parameter, setting_options, strategy_command
from reflective_agents.evals.formats import FORMATS
from reflective_agents.state.context import Context

_DATASET = (
    "File of tasks: HotpotQA's JSON, FEVER's JSONL, HumanEval's or MBPP's JSONL, 24.csv, crosswords as JSON, or CSV or "
    "JSONL with question and answer; also with .gz."
)
_OUT = "Folder of the results. Default: one in the data folder, named after strategy, data set and settings."
_CACHE = "Answer requests that were answered before from a file in the data folder; they do not count as calls."
_COST = "Most dollars of all tasks together; then the evaluation stops, and the same command with more goes on."
_TOKENS = "Most tokens of all tasks together. (--max-total-tokens is the limit of each task.)"
_WORKERS = "Run the tasks in this many processes of this machine; with --ray, in this many actors."
_EXPORT = "Write the results as a data frame, too: Parquet, one row per task."
FIGURES = "Write the table and each curve as files to publish, too: CSV, SVG and PNG."
_RAY = "Run the tasks on a Ray cluster: its address, auto, or local for one of this machine."
SCORER = "em|includes|number|choice|judge|FILE.py:FUNCTION"
SCORING = (
    "What says whether an answer is correct: exact match of the short answer, the right answer within the reply, its "
    "number, its letter, a model (judge:MODEL for another one than answers), or your function of the answer and its "
    "task. Default: as the data set's environment has it."
)
EPILOG = """
\b
A task that crashes is a result with its error. Results are kept one by one:
after a Ctrl-C, or worse, the same command goes on.
"""


def eval_command(name: str, summary: str, schema: type[Context], run: Callable[..., int]) -> TyperCommand:
    """Build the command `reflect eval <name>` of a strategy.

    Args:
        name: The strategy.
        summary: What it does, for the help.
        schema: Its settings.
        run: What the command does, with the fields of `cli.eval.Evaluation`.
    """
    return strategy_command(name, summary, _eval_parameters(), setting_options(schema), run, EPILOG)


def dataset_parameters() -> list[inspect.Parameter]:
    """List the parameters that say which tasks run, and how many at once."""
    dataset = Annotated[Path, typer.Argument(help=_DATASET, show_default=False, metavar="DATASET")]
    form = typer.Option("--format", metavar="|".join(FORMATS), help="Form of the data set. Default: as the first row.")
    concurrency = typer.Option(min=1, max=1000, metavar="1..1000", help="Tasks that are under way at once.")
    return [
        inspect.Parameter("dataset", inspect.Parameter.KEYWORD_ONLY, annotation=dataset),
        parameter("form", str | None, form),
        parameter("limit", int | None, typer.Option(min=1, metavar="NUMBER", help="Most tasks run.")),
        parameter("shuffle", int | None, typer.Option(metavar="SEED", help="Shuffle the tasks by this seed first.")),
        parameter("concurrency", int, concurrency, 4),
    ]


def _eval_parameters() -> list[inspect.Parameter]:
    """List the parameters of every evaluation, whatever the strategy."""
    return [
        *dataset_parameters(),
        parameter("scorer", str | None, typer.Option(metavar=SCORER, help=SCORING)),
        parameter("out", Path | None, typer.Option(metavar="FOLDER", help=_OUT)),
        parameter("html", Path | None, typer.Option(metavar="FILE", help="Write the results as one page, too.")),
        parameter("export", Path | None, typer.Option(metavar="FILE.parquet", help=_EXPORT)),
        parameter("figures", Path | None, typer.Option(metavar="FOLDER", help=FIGURES)),
        parameter(
            "retry_failed", bool, typer.Option("--retry-failed", help="Run tasks again that crashed or failed."), False
        ),
        parameter("cache", bool, typer.Option("--cache", help=_CACHE), False),
        parameter("max_total_cost", float | None, typer.Option(min=0, metavar="DOLLARS", help=_COST)),
        parameter("budget_tokens", int | None, typer.Option(min=1, metavar="NUMBER", help=_TOKENS)),
        parameter("workers", int | None, typer.Option(min=1, max=1000, metavar="NUMBER", help=_WORKERS)),
        parameter("ray", str | None, typer.Option(metavar="local|auto|ADDRESS", help=_RAY)),
        parameter("as_json", bool, typer.Option("--json", help="The summary as JSON, for programs."), False),
    ]
