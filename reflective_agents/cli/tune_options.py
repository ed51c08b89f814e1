"""The command `reflect tune <strategy>`: what can be asked of tuning, and the settings of the strategy."""

import inspect
from collections.abc import Callable
from typing import Annotated

import typer
from typer.core import TyperCommand

from reflective_agents.cli.eval_options import dataset_parameters
from reflective_agents.cli.options import parameter, setting_options, strategy_command
from reflective_agents.state.context import Context

_PROMPT = "A prompt that may change, such as chain_of_thought.SOLVE; repeat it for more. docs/parts.md has them all."
_AUTHOR = "The model that writes prompts. It is shown the right answers of two thirds of the tasks. Default: --model."
_RUNS = "Runs of a task that tuning may take, about; measuring the tasks held out comes on top."
_OUT = "Folder of the prompts and of all measurements."
_COST = "Most dollars in all; then tuning stops, and the same command with more goes on."
_TOKENS = "Most tokens in all. (--max-total-tokens is the limit of each run.)"
EPILOG = """
\b
A third of the tasks is to learn from, a third chooses, a third is held out:
the prompts as they are shipped and those found are compared on that one.
After a Ctrl-C, or worse, the same command goes on.
"""


def tune_command(name: str, summary: str, schema: type[Context], run: Callable[..., int]) -> TyperCommand:
    """Build the command `reflect tune <name>` of a strategy.

    Args:
        name: The strategy.
        summary: What it does, for the help.
        schema: Its settings.
        run: What the command does, with the fields of `cli.tune.Tuning`.
    """
    return strategy_command(name, summary, _tune_parameters(), setting_options(schema), run, EPILOG)


def _tune_parameters() -> list[inspect.Parameter]:
    """List the parameters of tuning, whatever the strategy."""
    prompts = Annotated[list[str], typer.Option("--prompt", metavar="NAME", help=_PROMPT, show_default=False)]
    return [
        *dataset_parameters(),
        inspect.Parameter("names", inspect.Parameter.KEYWORD_ONLY, annotation=prompts),
        parameter("author", str | None, typer.Option(metavar="MODEL", help=_AUTHOR)),
        parameter("runs", int, typer.Option(min=1, metavar="NUMBER", help=_RUNS), 200),
        parameter("out", str, typer.Option(metavar="FOLDER", help=_OUT), "tuned"),
        parameter("max_total_cost", float | None, typer.Option(min=0, metavar="DOLLARS", help=_COST)),
        parameter("budget_tokens", int | None, typer.Option(min=1, metavar="NUMBER", help=_TOKENS)),
        parameter("as_json", bool, typer.Option("--json", help="The comparison as JSON, for programs."), False),
    ]
