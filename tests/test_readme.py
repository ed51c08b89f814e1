"""The README: its examples run, its links lead somewhere, its commands and settings exist."""

import contextlib
import re
from pathlib import Path

import pytest

from cli.strategies import STRATEGIES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_python_example_runs(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "offline")
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(example, "README.md", "exec"), names)
    assert names["graph"]


def test_every_link_into_the_project_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_strategy_is_in_the_table_with_its_greatest_number_of_calls() -> None:
    calls = {"reflection": 6, "reflexion": 4, "lats": 62, "chain_of_thought": 1, "react": 9, "trials": 32}
    calls |= {"plan": 139, "team": 49, "town": 500, "memory": 7}
    calls["tree_of_thoughts"] = 4
    calls["rap"] = 112
    calls |= {"ab_mcts": 40, "best_of_n": 26}
    assert set(calls) == set(STRATEGIES)
    for name, most in calls.items():
        assert re.search(rf"^\| \[`{name}`\].*at most {most} \|$", README, re.MULTILINE), name


def test_every_command_exists(capsys: pytest.CaptureFixture[str]) -> None:
    from cli.main import main

    lines = re.findall(r"^reflect (.*?)(?:  +#.*)?$", README, re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        words = line.split()
        command = words[:2] if words[0] in ("run", "eval", "memory") else words[:1]
        with contextlib.suppress(SystemExit):
            assert main([*command, "--help"]) == 0, line
        known = capsys.readouterr().out
        for option in re.findall(r"--[a-z-]+", line):
            assert option in known, line
