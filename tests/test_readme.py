"""The README in English and in Chinese: its examples run, its links lead somewhere, its commands and settings exist."""

import contextlib
import re
import tomllib
from pathlib import Path

import pytest

from bench.pages import tables
from reflective_agents.state.settings import strategy_names

ROOT = Path(__file__).parent.parent
PAGES = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "README.zh.md")}
README = PAGES["README.md"]
FOUND = {name: re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL) for name, text in PAGES.items()}
EXAMPLES = [pytest.param(*found, id=f"{name}-{n}") for name, all_ in FOUND.items() for n, found in enumerate(all_)]
pages = pytest.mark.parametrize("text", PAGES.values(), ids=PAGES)


@pytest.mark.parametrize(("example", "printed"), EXAMPLES)
def test_every_python_example_prints_what_stands_below_it(
    example: str, printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MODEL", "offline")
    exec(compile(example, "README.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == printed


def test_every_example_was_found_and_the_page_stays_short() -> None:
    assert all(len(FOUND[name]) == text.count("```python") > 0 for name, text in PAGES.items())
    assert len(README.split()) < 1500


@pages
def test_every_link_into_the_project_leads_somewhere(text: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []


@pages
def test_code_fits_a_window_and_no_table_is_wider_than_a_phone(text: str) -> None:
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 95
    assert [table.head for table in tables(text)] == []


def test_badges_say_what_is_true() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [word.rpartition(" ")[2] for word in project["classifiers"] if "Python :: 3." in word]
    assert f"[Python {versions[0]} to {versions[-1]}]" in README
    assert f"badge/python-{versions[0]}%20to%20{versions[-1]}-" in README
    assert project["requires-python"] == f">={versions[0]}"
    assert f"[{project['license']} licence]" in README
    assert f"badge/strategies-{len(strategy_names())}-" in README


@pages
def test_every_strategy_is_listed_with_its_greatest_number_of_calls(text: str) -> None:
    calls = {"reflection": 6, "reflexion": 6, "lats": 22, "chain_of_thought": 1, "react": 12, "trials": 32}
    calls |= {"plan": 142, "team": 49, "town": 500, "memory": 8}
    calls["tree_of_thoughts"] = 4
    calls["rap"] = 116
    calls |= {"aggregation": 13, "ab_mcts": 40, "best_of_n": 26, "auto": 150}
    assert set(calls) == set(strategy_names())
    for name, most in calls.items():
        assert re.search(rf"^- \[`{name}`\].*(at most|最多) {most} (calls?\)|次）)$", text, re.MULTILINE), name


@pages
def test_every_command_exists(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    from reflective_agents.cli.main import main

    lines = re.findall(r"^reflect (.*?)(?:  +#.*)?$", text, re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        words = line.split()
        named = words[0] in ("run", "eval", "memory") and not words[1].startswith("-")
        command = words[:2] if named else words[:1]
        with contextlib.suppress(SystemExit):
            assert main([*command, "--help"]) == 0, line
        known = capsys.readouterr().out
        for option in re.findall(r"--[a-z-]+", line):
            assert option in known, line
