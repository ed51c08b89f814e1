"""The options of `reflect run`: made from the settings, checked by them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.cli.options import make_context
from reflective_agents.environments.game24 import Game24
from reflective_agents.state.errors import Misuse
from reflective_agents.state.groups import OWN, grouped
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.settings.reflection import ReflectionContext


@pytest.mark.parametrize("strategy", strategy_names())
def test_every_setting_is_an_option_with_its_words_and_its_default(reflect: Any, strategy: str) -> None:
    shown = " ".join(reflect("run", strategy, "--help").out.split())
    for setting, field in settings_of(strategy).model_fields.items():
        if field.exclude:
            continue
        assert re.search(f"--{setting.replace('_', '-')}[ /]", shown), setting
        assert " ".join((field.description or "").split()) in shown, setting
        if field.default not in (None, [], {}) and field.annotation is not bool:
            assert f"Default: {field.default}." in shown or "Default: " in str(field.description), setting


def test_the_help_shows_the_groups(reflect: Any) -> None:
    shown = reflect("run", "lats", "--help").out
    headings = re.findall(r"^([A-Z][a-z ]+):$", shown, re.MULTILINE)
    assert headings == ["Arguments", "Options", *grouped(settings_of("lats"))]
    of_strategy = shown[shown.index(f"{OWN}:") : shown.index("Models:")]
    assert "--max-depth" in of_strategy
    assert "--model" not in of_strategy


def test_functions_are_no_option(reflect: Any) -> None:
    assert "--checks" not in reflect("run", "reflection", "--help").out
    assert "--tools " not in reflect("run", "react", "--help").out


def test_bounds_and_choices_are_shown(reflect: Any) -> None:
    shown = reflect("run", "lats", "--help").out
    assert "--n 1..100" in shown
    assert "--max-seconds >0..604800" in shown
    assert "--grading each|together" in shown
    assert "--revise-answers / --no-revise-answers" in shown


def test_what_is_given_wins_over_the_environment_and_that_over_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_N", "7")
    monkeypatch.setenv("REFLECT_MAX_DEPTH", "8")
    context = make_context(LatsContext, {"n": "3"})
    assert isinstance(context, LatsContext)
    assert (context.n, context.max_depth, context.max_expansions) == (3, 8, 10)


def test_a_value_out_of_bounds_names_its_option() -> None:
    with pytest.raises(Misuse, match=r"^--n: must be at least 1 \(got 0\)$"):
        make_context(LatsContext, {"n": "0"})


@pytest.mark.parametrize(("variable", "value"), [("REFLECT_MIN_WORDS", "0"), ("REFLECT_CRITIC", "nobody")])
def test_a_bad_value_of_the_environment_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(Misuse, match=rf"^{variable}: .* \(got {value}\)$"):
        make_context(ReflectionContext, {})


def test_a_setting_that_is_no_text_cannot_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_VERIFIERS", "print")
    with pytest.raises(Misuse, match="verifiers"):
        make_context(ReflectionContext, {})


def test_dotenv_fills_in_but_never_overrides(reflect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_N", "to be put back")
    monkeypatch.delenv("REFLECT_N")
    monkeypatch.setenv("REFLECT_MAX_DEPTH", "4")
    Path(".env").write_text("REFLECT_N=0\nREFLECT_MAX_DEPTH=0\n")
    ended = reflect("run", "lats", "Why?")
    assert (ended.code, ended.err) == (2, "reflect: REFLECT_N: must be at least 1 (got 0)\n")


def test_unreadable_dotenv_is_misuse(reflect: Any) -> None:
    Path(".env").write_bytes(b"MODEL=\xff\xfe")
    ended = reflect("threads")
    assert ended.code == 2
    assert ended.err.startswith("reflect: .env cannot be read")


@pytest.mark.parametrize("args", [["--help"], ["run", "lats", "--help"]], ids=" ".join)
@pytest.mark.process
def test_help_loads_no_framework(args: list[str]) -> None:
    heavy = {"langgraph", "langchain_core", "langchain_openai", "openai", *(["pydantic"] if len(args) == 1 else [])}
    program = f"""
import sys
from reflective_agents.cli.main import main
main({args!r})
print({heavy!r} & sys.modules.keys(), file=sys.stderr)
"""
    root = str(Path(__file__).parent.parent.parent)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert done.stderr == "set()\n"


def test_help_explains_the_exit_codes(reflect: Any) -> None:
    shown = reflect("--help").out
    assert [code for code in ("  0  ", "  1  ", "  2  ", "  3  ", "  130  ") if code not in shown] == []


def test_an_environment_is_loaded_by_its_class() -> None:
    given = {"environment": "reflective_agents.environments.game24:Game24"}
    context = make_context(LatsContext, given)
    assert isinstance(context, LatsContext)
    assert isinstance(context.environment, Game24)
    assert context.proposals == "list"


@pytest.mark.parametrize("named", ["nowhere:Game", "reflective_agents.environments.game24:Chess", "json:loads"])
def test_a_class_that_is_no_environment_is_misuse(named: str) -> None:
    with pytest.raises(Misuse, match=f"^environment '{named}': .*; name "):
        make_context(LatsContext, {"environment": named})
