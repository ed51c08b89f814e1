"""The README: its examples run, its links lead somewhere, its commands and settings exist."""

import contextlib
import re
from pathlib import Path

import pytest

from reflective_agents.state.settings import strategy_names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(("example", "printed"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_python_example_prints_what_stands_below_it(
    example: str, printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MODEL", "offline")
    exec(compile(example, "README.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == printed


def test_every_example_was_found_and_the_page_stays_short() -> None:
    assert len(EXAMPLES) == README.count("```python") > 0
    assert len(README.split()) < 1500


def test_every_link_into_the_project_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_strategy_is_in_the_table_with_its_greatest_number_of_calls() -> None:
    calls = {"reflection": 6, "reflexion": 6, "lats": 22, "chain_of_thought": 1, "react": 12, "trials": 32}
    calls |= {"plan": 142, "team": 49, "town": 500, "memory": 8}
    calls["tree_of_thoughts"] = 4
    calls["rap"] = 116
    calls |= {"aggregation": 13, "ab_mcts": 40, "best_of_n": 26, "auto": 150}
    assert set(calls) == set(strategy_names())
    for name, most in calls.items():
        assert re.search(rf"^\| \[`{name}`\].*at most {most} \|$", README, re.MULTILINE), name


def test_every_command_exists(capsys: pytest.CaptureFixture[str]) -> None:
    from reflective_agents.cli.main import main

    lines = re.findall(r"^reflect (.*?)(?:  +#.*)?$", README, re.MULTILINE)
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
