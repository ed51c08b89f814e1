"""Turns the settings of a strategy into options of the command, and the values of these back into settings."""

import inspect
from collections.abc import Callable, Sequence
from itertools import chain
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError
from typer.core import TyperArgument, TyperCommand
from typer.main import get_command
from typer.models import ArgumentInfo, OptionInfo

from reflective_agents.state.context import Context
from reflective_agents.state.employment import LowerStrategy
from reflective_agents.state.errors import Misuse
from reflective_agents.state.groups import group_of, grouped
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.text.structure import Json
from reflective_agents.text.validation import in_plain_words


class _GroupedCommand(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options, those of no group first."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record:
                general = "Arguments" if isinstance(param, TyperArgument) else "Options"
                title = getattr(param, "rich_help_panel", None) or general
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def flag_of(name: str) -> str:
    """Return the command-line option of a setting."""
    return "--" + name.replace("_", "-")


def writable(schema: type[Context]) -> dict[str, FieldInfo]:
    """Return the settings that can be written as text, in the order of their groups."""
    fields = chain.from_iterable(group.items() for group in grouped(schema).values())
    return {name: field for name, field in fields if not field.exclude}


def run_command(name: str, summary: str, schema: type[Context], run: Callable[..., int]) -> TyperCommand:
    """Build the command `reflect run <name>`, with an option for each setting that can be written as text.

    Args:
        name: The strategy.
        summary: What it does, for the help.
        schema: Its settings. All their options are optional, and their values are left to pydantic.
        run: What the command does, with the fields of `cli.request.Request`.
    """
    old_names: list[inspect.Parameter] = []
    for old, new in schema.renamed.items():
        hidden = typer.Option(flag_of(old), hidden=True, help=f"Now {flag_of(new)}.")
        old_names.append(parameter(old, str | None, hidden))
    takes_critique = "critic" in schema.model_fields or bool(schema.level)  # or that of a worker
    return strategy_command(name, summary, _run_parameters(takes_critique), [*setting_options(schema), *old_names], run)


def setting_options(schema: type[Context]) -> list[inspect.Parameter]:
    """List the options of a strategy's settings, by group."""
    return [option(name, field) for name, field in writable(schema).items()]


def strategy_command(
    name: str,
    summary: str,
    parameters: Sequence[inspect.Parameter],
    settings: Sequence[inspect.Parameter],
    run: Callable[..., int],
    epilog: str | None = None,
) -> TyperCommand:
    """Build the command of a strategy.

    Args:
        name: The strategy.
        summary: What it does, for the help.
        parameters: What every strategy takes.
        settings: The options of this one's settings. Their values are left to pydantic.
        run: What the command does, with `strategy`, the `parameters`, and in `settings` those that were set.
        epilog: What the help ends with.
    """

    def command(**values: Any) -> int:
        given: JsonObject = {}
        for option in settings:
            value = values.pop(option.name)
            if value is not None:
                given[option.name] = value
        return run(strategy=name, settings=given, **values)

    # Typer reads the options off the signature of a function.
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in [*parameters, *settings]}
    command.__signature__ = inspect.Signature([*parameters, *settings])  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(name, cls=_GroupedCommand, help=summary, epilog=epilog)(command)
    built = get_command(app)
    assert isinstance(built, TyperCommand)
    return built


def _run_parameters(takes_critique: bool) -> list[inspect.Parameter]:
    """List the parameters of every strategy, whatever its settings."""
    parameters = [
        parameter("question", str | None, typer.Argument(help=_QUESTION, show_default=False)),
        parameter("thread", str | None, typer.Option(help="Go on with this conversation, or name a new one.")),
        parameter("resume", bool, typer.Option("--resume", help=_RESUME), False),
        parameter("as_json", bool, typer.Option("--json", help="One JSON object on stdout, for programs."), False),
    ]
    if takes_critique:
        info = typer.Option(help="With --resume: a person's answer to the draft, 'accept' or what is wrong with it.")
        parameters.append(parameter("critique", str | None, info))
    return parameters


_QUESTION = (
    "What to answer; in quotes. - reads it from stdin, @FILE from a file; so does every option that takes a text."
)
_RESUME = "Go on with the interrupted run of --thread, else with the latest; its settings hold unless given anew."


def parameter(
    name: str, kind: type | UnionType, info: ArgumentInfo | OptionInfo, default: Json = None
) -> inspect.Parameter:
    """Make a parameter of a generated command, which Typer turns into an argument or an option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def option(name: str, field: FieldInfo) -> inspect.Parameter:
    """Turn a setting into an option, with its description, its bounds and its default."""
    flag, words, group = flag_of(name), field.description, group_of(name, field)
    if field.annotation is bool:
        negative = f"--no-{flag[2:]}"
        words = f"{words} Default: {flag if field.default else negative}."
        return parameter(name, bool | None, typer.Option(f"{flag}/{negative}", help=words, rich_help_panel=group))
    if field.default not in (None, [], {}) and "Default: " not in str(words):
        words = f"{words} Default: {field.default}."
    info = typer.Option(flag, help=words, metavar=metavar_of(field), rich_help_panel=group)
    return parameter(name, str | None, info)


def metavar_of(field: FieldInfo) -> str:
    """Describe what an option takes: the choices, or the kind of value with its bounds."""
    kinds = [field.annotation, *get_args(field.annotation)]
    choices: list[str] = []
    for kind in kinds:
        if get_origin(kind) is Literal:
            choices += get_args(kind)
    for mark in field.metadata:
        if isinstance(mark, LowerStrategy):
            choices += mark.choices
    if choices:
        return "|".join(choices)
    low, high = _bounds(field)
    if low and high:
        return f"{low}..{high}"
    return "INTEGER" if int in kinds else "TEXT"


def _bounds(field: FieldInfo) -> tuple[str, str]:
    """Return the lowest and the highest value of a setting, in words; empty for none."""
    low = high = ""
    for rule in field.metadata:
        if hasattr(rule, "gt"):
            low = f">{rule.gt}"
        elif hasattr(rule, "ge"):
            low = f"{rule.ge}"
        elif hasattr(rule, "le"):
            high = f"{rule.le}"
    return low, high


def make_context(schema: type[Context], settings: JsonMapping) -> Context:
    """Make the settings of a run: these, then those of the environment, then the defaults.

    Raises:
        Misuse: if a value does not fit; the text names the option, or the variable of the environment, it came from.
    """
    try:
        return schema(**with_environment(settings))
    except ValidationError as error:
        raise Misuse("; ".join(_explain(problem, schema, settings) for problem in error.errors())) from error
    except SettingsError as error:
        raise Misuse(f"a variable REFLECT_... of the environment cannot be read: {error}") from error


def with_environment(settings: JsonMapping) -> JsonObject:
    """Return settings with the environment itself where they name its class, as in `my_game:Guess`.

    Only the command loads code by name: its user may run any code anyway.

    Raises:
        Misuse: if there is no such class.
    """
    name = settings.get("environment")
    if not isinstance(name, str) or ":" not in name:
        return dict(settings)
    from reflective_agents.environments.registry import load_environment

    return {**settings, "environment": load_environment(name)}


def _explain(problem: ErrorDetails, schema: type[Context], settings: JsonMapping) -> str:
    name = str(problem["loc"][0]) if problem["loc"] else ""
    parts = [flag_of(name) if name in settings else _variable(schema, name)]
    inner: list[str] = []
    for part in problem["loc"][1:]:
        inner.append(f"item {part + 1}" if isinstance(part, int) else str(part))
    if inner:
        parts.append(", ".join(inner))
    parts.append(f"{in_plain_words(problem['msg'])} (got {str(problem['input'])[:100]})")
    return ": ".join(parts)


def _variable(schema: type[Context], name: str) -> str:
    """Return the variable of the environment that a setting is read from."""
    field = schema.model_fields.get(name)
    alias = field.validation_alias if field else None
    return str(alias.choices[-1]) if isinstance(alias, AliasChoices) else f"REFLECT_{name.upper()}"
