"""What cannot be read, written or run is refused by every command before anything is spent or written."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.main import get_command

from reflective_agents.cli.main import app
from reflective_agents.cli.options import flag_of
from reflective_agents.state.policy import operators_settings
from reflective_agents.state.settings import settings_of, strategy_names

BELOW_A_FILE = "file/below"
"""What can neither be read nor written: `file` is a file."""
SCHEMAS = [settings_of(name) for name in strategy_names()]
SETTINGS = {
    flag_of(name)
    for schema in SCHEMAS
    for name in operators_settings(schema)
    if schema.model_fields[name].annotation is not bool
}
"""Settings that may name a file: those that only the operator of a server may set."""
NEEDED: dict[tuple[str, ...], list[str]] = {
    ("compare",): ["run"],
    ("dataset",): ["rows.csv", "--to", "inspect"],
    **{("experience", name): ["lessons"] for name in ("list", "export", "import", "merge")},
    ("memory", "export"): [],
    ("memory", "import"): [],
    ("town",): [],
    ("tree",): [],
    **{("run", name): ["Why?"] for name in strategy_names()},
    **{("eval", name): ["rows.csv"] for name in strategy_names()},
    **{("tune", name): ["rows.csv", "--prompt", "chain_of_thought.SOLVE"] for name in strategy_names()},
}
"""What each command that takes files needs beside them."""
BESIDE = {"docstore": ["--environment", "fever"]}
"""What a setting has an effect with."""


def commands(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands, by what is typed."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


def names_a_file(parameter: Any) -> bool:
    """Tell whether a parameter names a file: its type or its metavar says so, or it is a setting of that kind."""
    by_metavar = (parameter.metavar or "").startswith("FILE")
    return parameter.type_descriptor.annotation is Path or by_metavar or parameter.opts[0] in SETTINGS


def cases(every: bool) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each parameter of each command that names a file; unless `every`, what all strategies have for one only."""
    seen: set[tuple[str, str]] = set()
    for command, made in commands(get_command(app)):
        for parameter in filter(names_a_file, made.params):
            if every or (command[0], parameter.name) not in seen:
                seen.add((command[0], parameter.name))
                yield command, parameter


@pytest.fixture(autouse=True)
def files() -> None:
    Path("file").touch()
    Path("rows.csv").write_text("question,answer\n" + "Why?,Because.\n" * 6)


def files_there() -> list[str]:
    """List what lies in the working folder and in the data folder, save a memory, which may be made empty."""
    home = Path(os.environ["REFLECT_HOME"])
    return sorted(str(path) for folder in (Path(), home) for path in folder.rglob("*") if path.name != "memory.sqlite")


def with_a_bad_file(command: tuple[str, ...], parameter: Any) -> list[str]:
    """Return what is typed."""
    if isinstance(parameter, TyperArgument):
        others = [word for word in NEEDED[command] if word != "rows.csv"]
        # An experience is named before its file.
        return [*command, *others, BELOW_A_FILE] if command[0] == "experience" else [*command, BELOW_A_FILE, *others]
    assert isinstance(parameter, TyperOption)
    return [*command, *NEEDED[command], parameter.opts[0], BELOW_A_FILE, *BESIDE.get(parameter.name or "", [])]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=[pytest.mark.thorough, pytest.mark.timeout(400)])])
def test_a_file_that_cannot_be_used_is_refused_first(reflect: Any, every: bool) -> None:
    before = files_there()
    for command, parameter in cases(every):
        typed = with_a_bad_file(command, parameter)
        ended = reflect(*typed)
        assert (ended.code, ended.out) == (2, ""), typed
        assert BELOW_A_FILE.partition("/")[0] in ended.err.splitlines()[-1], typed
        assert files_there() == before, typed


def test_a_setting_of_the_environment_is_refused_first(reflect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_PRICES", BELOW_A_FILE)
    before = files_there()
    ended = reflect("town")
    assert (ended.code, ended.out, files_there()) == (2, "", before)
    assert BELOW_A_FILE in ended.err


@pytest.mark.parametrize("html", ["page.html", "nowhere/page.html", "", "x" * 300, f"{'x' * 300}/page.html"])
def test_a_page_that_cannot_be_written_costs_no_day(reflect: Any, html: str) -> None:
    Path("page.html").write_text("mine")
    before = files_there()
    ended = reflect("town", "--html", html)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("reflect: --html: ")
    assert (files_there(), Path("page.html").read_text()) == (before, "mine")


@pytest.mark.parametrize("option", ["--html", "--export"])
def test_a_file_that_cannot_be_written_costs_no_evaluation(reflect: Any, option: str) -> None:
    Path("folder").mkdir()
    before = files_there()
    ended = reflect("eval", "reflection", "rows.csv", option, "folder")
    assert (ended.code, ended.out, files_there()) == (2, "", before)
    assert ended.err.startswith(f"reflect: {option}: ")


@pytest.mark.parametrize(
    "command", [["run", "react", "Write f."], ["run", "trials", "Write f."], ["eval", "lats", "rows.csv"]]
)
def test_a_missing_sandbox_is_refused_first(reflect: Any, command: list[str]) -> None:
    before = files_there()
    ended = reflect(*command, "--environment", "programming")
    assert (ended.code, ended.out, files_there()) == (2, "", before)
    assert "bubblewrap" in ended.err
    assert "--unsafe-code" in ended.err


GAME = ["run", "react", "no numbers", "--environment", "game24"]
"""Refused when the run has begun, by the environment."""


def test_a_run_that_is_refused_leaves_no_thread(reflect: Any) -> None:
    assert reflect(*GAME, "--thread", "t").code == 2
    assert reflect("threads").out.count("\n") == 1
    assert reflect("run", "reflection", "Why?", "--thread", "t").code == 0


def test_a_run_that_is_refused_leaves_a_thread_as_it_was(reflect: Any) -> None:
    assert reflect("run", "react", "Why?", "--thread", "t").code == 0
    before = reflect("draw", "react", "--thread", "t").out
    assert reflect(*GAME, "--thread", "t").code == 2
    assert "the last run on thread t has ended" in reflect("run", "react", "--thread", "t", "--resume").err
    assert reflect("draw", "react", "--thread", "t").out == before
    assert "continued" in reflect("run", "react", "And?", "--thread", "t").err
    [row] = reflect("threads").out.splitlines()[1:]
    assert "unfinished" not in row
