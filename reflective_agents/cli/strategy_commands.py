"""`reflect run`, `reflect eval` and `reflect tune`: a sub-command for each strategy, made of its settings."""

import shlex
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from reflective_agents.cli.output import say
from reflective_agents.cli.streams import read_text
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.text.clean import clean_data

INTERRUPTED = 130


def _read(values: dict[str, Any]) -> dict[str, Any]:
    """Read the texts that are written as `-` or `@FILE`: the question and the settings."""
    from reflective_agents.cli.options import flag_of

    settings: dict[str, Any] = {}
    for name, value in values["settings"].items():
        settings[name] = read_text(value, flag_of(name)) if isinstance(value, str) else value
    values = {**values, "settings": settings}
    if values.get("question"):
        values["question"] = read_text(values["question"], "the question")
    return values


def _interruptible(prepare: Callable[..., Callable[[], int]]) -> Callable[..., int]:
    """Make a command of a function that returns what is to be run: its imports take seconds, and a Ctrl-C may come."""

    def command(**values: Any) -> int:
        try:
            run = prepare(**values)
        except KeyboardInterrupt:
            say("interrupted before the run began; nothing was written")
            return INTERRUPTED
        return run()

    return command


@_interruptible
def run_strategy(**values: Any) -> Callable[[], int]:
    """Answer a question, with the fields of `cli.request.Request`."""
    from reflective_agents.cli.request import Request
    from reflective_agents.cli.run import run

    # Bytes that are no UTF-8 come as halves of surrogate pairs.
    return partial(run, Request(**clean_data(_read(values))))


@_interruptible
def _evaluate(**values: Any) -> Callable[[], int]:
    from reflective_agents.cli.eval import Evaluation, run

    return partial(run, Evaluation(**_read(values)))


@_interruptible
def _tune(**values: Any) -> Callable[[], int]:
    from reflective_agents.state.extras import need

    need("gepa", "scipy", extra="tune", purpose="reflect tune")
    from reflective_agents.cli.tune import Tuning, run

    return partial(run, Tuning(**_read(values)))


class StrategyGroup(TyperGroup):
    """`reflect run`: a sub-command for each strategy, made from its settings when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of the strategies."""
        return list(strategy_names())

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand:
        """Build the sub-command of a strategy."""
        from reflective_agents.cli.options import run_command

        if " " in cmd_name:
            example = shlex.quote(cmd_name[:100])
            raise Misuse(
                f"name a strategy first: reflect run lats {example}, or let it be chosen: reflect ask {example}"
            )
        return run_command(cmd_name, settings_of(cmd_name).does, settings_of(cmd_name), run_strategy)


class EvalGroup(StrategyGroup):
    """`reflect eval`: the same for evaluations."""

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand:
        """Build the sub-command of a strategy."""
        from reflective_agents.cli.eval_options import eval_command

        return eval_command(cmd_name, settings_of(cmd_name).does, settings_of(cmd_name), _evaluate)


class TuneGroup(StrategyGroup):
    """`reflect tune`: the same for prompts that improve on a data set."""

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand:
        """Build the sub-command of a strategy."""
        from reflective_agents.cli.tune_options import tune_command

        return tune_command(cmd_name, settings_of(cmd_name).does, settings_of(cmd_name), _tune)


runs = typer.Typer(
    cls=StrategyGroup,
    rich_markup_mode=None,
    help="Answer a question with a strategy.",
    subcommand_metavar="STRATEGY QUESTION",
)
evaluations = typer.Typer(
    cls=EvalGroup,
    rich_markup_mode=None,
    help="Run a strategy on a data set, measure its answers and keep the results.",
    subcommand_metavar="STRATEGY DATASET",
)
tunings = typer.Typer(
    cls=TuneGroup,
    rich_markup_mode=None,
    help="Improve the prompts of a strategy on a data set, with GEPA.",
    subcommand_metavar="STRATEGY DATASET",
)


@evaluations.callback(invoke_without_command=True)
def _rescore(
    context: typer.Context,
    run: Annotated[
        str | None,
        typer.Option("--rescore", metavar="RUN", help="Measure a finished run's answers anew."),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="With --rescore: the data set, where the results do not suffice."),
    ] = None,
    scorer: Annotated[
        str | None,
        typer.Option(help="With --rescore: em, includes, number, choice, judge, judge:MODEL or FILE.py:FUNCTION."),
    ] = None,
) -> int | None:
    if run is None and context.invoked_subcommand is None:
        raise Misuse("reflect eval needs a strategy and a data set, or --rescore RUN; see reflect eval --help")
    if run is None:
        return None
    if context.invoked_subcommand is not None:
        raise Misuse("--rescore runs nothing: leave out the strategy")
    from reflective_agents.cli.rescore import rescore_run

    return rescore_run(run, dataset, scorer)
