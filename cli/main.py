"""The `reflect` command: its sub-commands, its exit codes, and the one place where misuse becomes a line."""

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from dotenv import load_dotenv
from typer.core import TyperCommand, TyperGroup

from cli.memory import app as memories
from cli.output import print_table, say
from cli.strategies import STRATEGIES, known, settings_of
from state.errors import Misuse

FAILED, MISUSE, INTERRUPTED = 1, 2, 130
Pairs = Literal["siblings", "trajectories"]
EXIT_CODES = """
\b
Exit codes:
    0  an answer was returned: solved, or the best one found when the run
       reached a limit or had nothing left to do
    1  the run failed: there is no answer
    2  misuse: nothing was run, and the line on stderr says what to do
    3  the run waits for a person's critique
  130  interrupted by Ctrl-C or SIGTERM: the line on stderr says how to go on
"""


class StrategyGroup(TyperGroup):
    """`reflect run`: a sub-command for each strategy, made from its settings when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the strategies."""
        return list(STRATEGIES)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand:
        """The sub-command of a strategy; raises UnknownStrategy."""
        return _run_command(cmd_name)


class EvalGroup(StrategyGroup):
    """`reflect eval`: the same for evaluations."""

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand:
        """The sub-command of a strategy; raises UnknownStrategy."""
        from cli.eval_options import eval_command

        return eval_command(cmd_name, known(cmd_name).does, settings_of(cmd_name), _evaluate)


app = typer.Typer(
    help="Agents that look at what they have done and do better.",
    epilog=EXIT_CODES,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut long options off
)
runs = typer.Typer(
    cls=StrategyGroup,
    rich_markup_mode=None,
    help="Answer a question with a strategy.",
    subcommand_metavar="STRATEGY QUESTION",
)
app.add_typer(runs, name="run")
evaluations = typer.Typer(
    cls=EvalGroup,
    rich_markup_mode=None,
    help="Run a strategy on a data set, measure its answers and keep the results.",
    subcommand_metavar="STRATEGY DATASET",
)
app.add_typer(evaluations, name="eval")
app.add_typer(memories, name="memory")


@app.callback()
def _load_env() -> None:
    try:
        load_dotenv(Path(".env"), override=False)
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f".env cannot be read ({error}): correct or remove it") from error


@app.command()
def strategies() -> int:
    """List the strategies and when to use them."""
    from cli.options import own_options

    rows = [(name, it.does, it.use_when, " ".join(own_options(settings_of(name)))) for name, it in STRATEGIES.items()]
    print_table(("strategy", "what it does", "use it when", "its own settings"), rows)
    return 0


@app.command()
def threads(limit: Annotated[int, typer.Option(min=1, help="Most threads listed.")] = 20) -> int:
    """List the threads, the one asked last first."""
    from cli.listing import list_threads

    return list_threads(limit)


@app.command()
def compare(
    runs: Annotated[list[str], typer.Argument(help="Folders of `reflect eval`; the first is what the others meet.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")] = False,
) -> int:
    """Put evaluations side by side, on the tasks they share, with a paired test."""
    from cli.compare import compare_runs

    return compare_runs(runs, as_json)


@app.command()
def draw(
    strategy: Annotated[str, typer.Argument(help="One of: " + ", ".join(STRATEGIES))],
    thread: Annotated[str | None, typer.Option(help="Draw the last run on this thread instead.")] = None,
) -> int:
    """Draw a strategy as a diagram, or a run as text.

    Without --thread: the graph of the strategy, in Mermaid. With it: what the last run on that thread has come to,
    as a search tree or as rounds.
    """
    known(strategy)
    from cli.draw import draw_graph, draw_thread

    return draw_thread(strategy, thread) if thread else draw_graph(strategy)


@app.command()
def tree(
    run: Annotated[str | None, typer.Argument(help="Its thread. Default: the last one with a tree.")] = None,
    as_json: Annotated[str | None, typer.Option("--json", metavar="FILE|-", help="Everything, as data.")] = None,
    as_mermaid: Annotated[str | None, typer.Option("--mermaid", metavar="FILE|-", help="A flowchart.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE|-", help="One page to explore it, without network.")] = None,
    preferences: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="Preference pairs as JSONL: prompt, chosen, rejected.")
    ] = None,
    pairs: Annotated[Pairs, typer.Option(help="Pairs of siblings (one turn) or of whole trajectories.")] = "siblings",
    margin: Annotated[float, typer.Option(min=0, max=1, help="By how much the chosen one must be better.")] = 0.1,
    finetune: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="The best trajectory as an example in JSONL, if it is solved.")
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="With --finetune: take it from this score on, solved or not.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there already.")] = False,
) -> int:
    """Show the tree of a search: as text, or in the files that are asked for; - is stdout."""
    from cli.tree import Asked
    from cli.tree import tree as show

    return show(Asked(run, as_json, as_mermaid, html, preferences, pairs, margin, finetune, min_score, force))


@app.command()
def town(
    told: Annotated[
        str | None, typer.Argument(help="What the first agent is told. Default: what the town's file says.")
    ] = None,
    thread: Annotated[str | None, typer.Option(help="Name of the run, to find it again.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a day that was interrupted.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Play nothing: show --thread, else the last day.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")] = False,
    html: Annotated[str | None, typer.Option(metavar="FILE|-", help="The day as one page, without network.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    file: Annotated[str | None, typer.Option("--town", help="A town's file. Default: the shipped one.")] = None,
    model: Annotated[str | None, typer.Option(help="As for reflect run.")] = None,
    steps: Annotated[str | None, typer.Option(metavar="1..10000", help="Most steps of the clock.")] = None,
    minutes: Annotated[str | None, typer.Option(metavar="1..240", help="Minutes in a step.")] = None,
    embeddings: Annotated[str | None, typer.Option(help="minilm, lexical, or <provider>:<model>.")] = None,
) -> int:
    """Let a small town of agents live for a day, and show it; reflect run town --help lists all settings."""
    from cli.town import Asked
    from cli.town import town as play

    given = {"town": file, "model": model, "max_steps": steps, "minutes": minutes, "embeddings": embeddings}
    settings = {name: value for name, value in given.items() if value is not None}
    return play(Asked(told, thread, resume, as_json, html, show, force, settings))


def _run_command(name: str) -> TyperCommand:
    from cli.options import run_command

    return run_command(name, known(name).does, settings_of(name), _run)


def _run(**asked: Any) -> int:
    try:
        from cli.request import Request
        from cli.run import run

        request = Request(**asked)
    except KeyboardInterrupt:  # these imports take seconds
        say("interrupted before the run began; nothing was written")
        return INTERRUPTED
    return run(request)


def _evaluate(**asked: Any) -> int:
    try:
        from cli.eval import Evaluation, run

        request = Evaluation(**asked)
    except KeyboardInterrupt:  # these imports take seconds
        say("interrupted before the run began; nothing was written")
        return INTERRUPTED
    return run(request)


def main(args: list[str] | None = None) -> int:
    """Run the command.

    Args:
        args: what follows `reflect` on the command line; None for the arguments of this process.

    Returns:
        The exit code, as `reflect --help` explains it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what a model writes need not fit the encoding of the terminal
    try:
        return app(args, prog_name="reflect", standalone_mode=False) or 0
    except Misuse as misuse:
        say(f"reflect: {misuse}")
    except typer.TyperException as misuse:
        command = getattr(getattr(misuse, "ctx", None), "command_path", "reflect")
        say(f"reflect: {misuse.format_message().rstrip('.')}; see {command} --help")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more when it ends
        return FAILED
    return MISUSE
