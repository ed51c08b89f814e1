"""The `reflect` command: its sub-commands, and the one place where misuse becomes a line."""

import sys
from importlib import metadata
from typing import Annotated

import typer

from reflective_agents.cli.commands import app as app
from reflective_agents.cli.environment import load_env
from reflective_agents.cli.experience import app as items
from reflective_agents.cli.memory import app as memories
from reflective_agents.cli.output import say
from reflective_agents.cli.strategy_commands import evaluations, runs, tunings
from reflective_agents.cli.streams import check_streams, drop_output, unwritable
from reflective_agents.state.errors import Misuse
from reflective_agents.state.secrets import redacted
from reflective_agents.text.validation import in_plain_words

FAILED, MISUSE = 1, 2

app.add_typer(runs, name="run")
app.add_typer(evaluations, name="eval", short_help="Run a strategy on a data set.")
app.add_typer(tunings, name="tune", short_help="Improve a strategy's prompts on a data set.")
app.add_typer(items, name="experience", short_help="Look at what runs have learned, and change it.")
app.add_typer(memories, name="memory", short_help="Look at what is remembered, and change it.")


@app.callback(invoke_without_command=True)
def _begin(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"reflect {metadata.version('reflective-agents')}")
        context.exit(0)
    load_env()
    if context.invoked_subcommand is None:
        print(context.get_help())


def _in_words(misuse: typer.TyperException) -> str:
    """Return what Typer has against a command: the option, and what is wrong with its value."""
    about, colon, wrong = misuse.format_message().rstrip(".").partition(": ")
    option = about.removeprefix("Invalid value for ").strip("'")
    return f"{option}: {in_plain_words(wrong)}" if colon else about


def _takes_question(command: str) -> bool:
    return command.split()[1:2] in (["ask"], ["run"])


def main(args: list[str] | None = None) -> int:
    """Run the command.

    Args:
        args: what follows `reflect` on the command line; None for the arguments of this process.

    Returns:
        The exit code, as `reflect --help` explains it.
    """
    try:
        check_streams()
        code: int = app(args, prog_name="reflect", standalone_mode=False) or 0
        if not sys.stdout.closed:  # as `reflect mcp` leaves it
            sys.stdout.flush()
        return code
    except Misuse as misuse:
        say(f"reflect: {redacted(str(misuse))}")
    except typer.TyperException as misuse:
        command = getattr(getattr(misuse, "ctx", None), "command_path", "reflect")
        quotes = ": put the question in quotes" if _takes_question(command) and "extra argument" in str(misuse) else ""
        say(f"reflect: {_in_words(misuse)}{quotes}; see {command} --help")
    except BrokenPipeError:
        drop_output()
        return FAILED
    except OSError as error:
        problem = unwritable(error)
        if not problem:
            raise
        drop_output()
        say(f"reflect: {problem}")
        return FAILED
    return MISUSE
