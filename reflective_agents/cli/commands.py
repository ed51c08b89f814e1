"""The commands of `reflect` beside those that every strategy has. What one needs is loaded only when it is called."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from reflective_agents.cli.output import print_table
from reflective_agents.cli.strategy_commands import run_strategy
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings import check_name, settings_of, strategy_names

Pairs = Literal["siblings", "trajectories"]
EXIT_CODES = """
\b
Exit codes:
    0  an answer was returned: solved, or the best one found when the run
       reached a limit or had nothing left to do
    1  the run failed: there is no answer, or its database was lost on the way
    2  misuse: nothing was run, and the line on stderr says what to do
    3  the run waits for a person's critique
  130  interrupted by Ctrl-C or SIGTERM: the line on stderr says how to go on
"""


class Commands(TyperGroup):
    """`reflect`: what a newcomer needs stands first."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands: ask, run and strategies, then as they are written below."""
        return sorted(self.commands, key=lambda name: ("ask", "run", "strategies", name).index(name))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command. Raises `Misuse` for the name of a strategy, and for a question."""
        command = super().get_command(ctx, cmd_name)
        if command is None and " " in cmd_name:
            raise Misuse(f"to ask a question: reflect ask {shlex.quote(cmd_name[:100])}")
        if command is None and cmd_name in strategy_names():
            raise Misuse(f'{cmd_name} is a strategy: reflect run {cmd_name} "your question"')
        return command


app = typer.Typer(
    cls=Commands,
    help='Agents that look at what they have done and do better. Begin with: reflect ask "your question"',
    epilog=EXIT_CODES,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut long options off
)


@app.command(
    short_help="Answer a question by the strategy that suits it.",
    add_help_option=False,  # that of `reflect run auto` is the help
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def ask(context: typer.Context) -> int:
    """Answer a question by the strategy that suits it: `reflect run auto`."""
    from reflective_agents.cli.options import run_command

    command = run_command("auto", "Answer a question by the strategy that suits it.", settings_of("auto"), run_strategy)
    code: int = command.main(context.args, prog_name="reflect ask", standalone_mode=False) or 0
    return code


@app.command(short_help="List the strategies, and when to use which.")
def strategies() -> int:
    """List the strategies, and when to use which; reflect run STRATEGY --help lists the settings of one."""
    rows = [(name, settings_of(name).use_when, settings_of(name).does) for name in strategy_names()]
    print_table(("strategy", "use it when", "what it does"), rows)
    return 0


@app.command(short_help="Offer the strategies to desktop clients and editors, as tools.")
def mcp() -> int:
    """Offer the strategies as tools of the Model Context Protocol, over stdin and stdout, to the client that starts
    this command."""
    import asyncio
    import signal

    from reflective_agents.state.extras import need

    need("mcp", extra="cli,mcp", purpose="reflect mcp")
    from reflective_agents.cli.mcp import serve

    # At once, as for SIGTERM: the thread that waits for stdin would hold up any gentler end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(serve())
    return 0


@app.command()
def threads(limit: Annotated[int, typer.Option(min=1, help="Most threads listed.")] = 20) -> int:
    """List the threads, the latest first."""
    from reflective_agents.cli.threads import list_threads

    return list_threads(limit)


@app.command(short_help="Put evaluations side by side.")
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Run folders of `reflect eval`, or the beginnings of their names; the first is the baseline."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one page with every task, too.")] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Write all results as one data frame, too.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the table and each curve as CSV, SVG and PNG, too.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a page or a frame that is there already.")] = False,
) -> int:
    """Put evaluations side by side, on the tasks they share, with a paired test."""
    from reflective_agents.cli.compare import compare_runs

    compare_runs(runs, as_json, html, export, figures, force=force)
    return 0


@app.command(short_help="Write a data set in the form of LangSmith or inspect_ai.")
def dataset(
    file: Annotated[Path, typer.Argument(help="The file of tasks, as for reflect eval.")],
    to: Annotated[Literal["langsmith", "inspect"], typer.Option(help="The form that is written.")],
    form: Annotated[str | None, typer.Option("--format", help="The form of the file, if not that of its rows.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Write at most this many tasks.")] = None,
    shuffle: Annotated[int | None, typer.Option(metavar="SEED", help="In a random order, the same for a seed.")] = None,
) -> int:
    """Write a data set to stdout in the form of LangSmith or inspect_ai, as JSON Lines."""
    from reflective_agents.evals.datasets import load_dataset
    from reflective_agents.evals.exchange_formats import WRITTEN

    for task in load_dataset(file, form=form, limit=limit, seed=shuffle).tasks:
        print(json.dumps(WRITTEN[to](task), ensure_ascii=False))
    return 0


@app.command()
def draw(
    strategy: Annotated[str, typer.Argument(help="One of: " + ", ".join(strategy_names()))],
    thread: Annotated[str | None, typer.Option(help="Draw the last run on this thread instead.")] = None,
) -> int:
    """Draw a strategy as a diagram, or a run as text.

    Without --thread: the graph of the strategy, in Mermaid. With it: what the last run on that thread has come to,
    as a search tree or as rounds.
    """
    check_name(strategy)
    from reflective_agents.cli.draw import draw_graph, draw_thread

    return draw_thread(strategy, thread) if thread else draw_graph(strategy)


@app.command(short_help="Show the tree of a search, as text or as a page.")
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
        float | None, typer.Option(min=0, max=1, help="With --finetune: the lowest score to take, solved or not.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there already.")] = False,
) -> int:
    """Show the tree of a search: as text, or in the files that are asked for; - is stdout."""
    from reflective_agents.cli.tree import TreeRequest
    from reflective_agents.cli.tree import tree as show

    return show(TreeRequest(run, as_json, as_mermaid, html, preferences, pairs, margin, finetune, min_score, force))


@app.command(short_help="Steer a tree search: prune, rescore, hint, stop, fork.")
def steer(
    thread: Annotated[str, typer.Argument(help="The thread of a tree search, paused or ended.")],
    change: Annotated[Literal["prune", "rescore", "hint", "more", "stop", "fork"], typer.Argument(help="What to do.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGUMENTS...", help="See below.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")] = False,
) -> int:
    """Steer a paused or finished tree search: prune nodes, set a score, give a hint, ask for more, stop, or fork.

    prune NODE...: neither expanded nor answered with.  rescore NODE SCORE: 0..1, as if the judge had said so.
    hint NODE TEXT: shown in all prompts there and below.  more NUMBER [LIMIT=NUMBER...]: this many more expansions,
    such as more 5 max_model_calls=40.  stop: answer now.  fork STEP: go on from an earlier step of its log.
    """
    from reflective_agents.cli.steer import steer as run

    return run(thread, change, arguments or [], as_json)


@app.command(short_help="Let a small town of agents live for a day.")
def town(
    opening: Annotated[
        str | None, typer.Argument(help="What the first agent is told. Default: what the town's file says.")
    ] = None,
    thread: Annotated[str | None, typer.Option(help="Name of the run, to find it again.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a day that was interrupted.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show a day that was played: --thread, else the last.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")] = False,
    html: Annotated[str | None, typer.Option(metavar="FILE|-", help="The day as one page, without network.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    file: Annotated[str | None, typer.Option("--town", help="A town's file. Default: the shipped one.")] = None,
    model: Annotated[str | None, typer.Option(help="As for reflect run.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, max=10_000, metavar="1..10000", help="Most steps of the clock.")
    ] = None,
    minutes: Annotated[int | None, typer.Option(min=1, max=240, metavar="1..240", help="Minutes in a step.")] = None,
    embeddings: Annotated[str | None, typer.Option(help="minilm, lexical, or <provider>:<model>.")] = None,
) -> int:
    """Let a small town of agents live for a day, and show it; reflect run town --help lists all settings."""
    from reflective_agents.cli.town import TownRequest
    from reflective_agents.cli.town import town as play

    options = {"town": file, "model": model, "max_steps": steps, "minutes": minutes, "embeddings": embeddings}
    settings = {name: value for name, value in options.items() if value is not None}
    return play(TownRequest(opening, thread, resume, as_json, html, show, force, settings))
