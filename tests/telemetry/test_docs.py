"""The page on watching runs: its examples run, its commands and variables exist."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace

from reflective_agents.state.settings import strategy_names
from reflective_agents.telemetry.log import LOGGERS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "observability.md"
TEXT = PAGE.read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(autouse=True)
def application(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Take back what an example changes for the whole process, and let it write elsewhere."""
    monkeypatch.setenv("MODEL", "offline")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        trace, "set_tracer_provider", lambda it: monkeypatch.setattr(trace, "get_tracer_provider", lambda: it)
    )
    yield
    for logger in LOGGERS.values():
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_python_example_runs(example: str) -> None:
    exec(compile(example, PAGE.name, "exec"), {"__name__": "example"})


def test_commands_name_strategies_that_exist() -> None:
    named = re.findall(r"reflect run (\S+)", TEXT)
    assert len(named) >= 4
    assert set(named) <= set(strategy_names())


def test_every_logger_is_explained() -> None:
    assert [logger.name for logger in LOGGERS.values() if f"| `{logger.name}` |" not in TEXT] == []
