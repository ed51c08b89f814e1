"""docs/strategies.md: what it says that a strategy costs is what `python -m bench.costs` measures."""

import re
from pathlib import Path

import pytest

from bench.costs import cost_of
from tests.strategies import STRATEGIES
from tests.strategies.base import Strategy

PAGE = (Path(__file__).parent.parent / "docs" / "strategies.md").read_text()
ROWS = {
    row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \|[^|]*\| (\d+) \| ([\d-]+) \| ([\d-]+) \|", PAGE, re.MULTILINE)
}


def test_every_strategy_has_a_row_and_no_cell_is_empty() -> None:
    assert set(ROWS) == {strategy.name for strategy in STRATEGIES}
    assert re.findall(r"^\|.*\|[ ]*\|.*$", PAGE, re.MULTILINE) == []


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
async def test_a_row_tells_what_a_run_costs(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REFLECT_HOME", str(tmp_path))
    measured = await cost_of(strategy)
    calls, waves, tokens = ROWS[strategy.name]
    assert measured.calls == int(calls)
    assert waves == "-" or abs(measured.waves - int(waves)) <= 1  # what begins at once on a busy machine
    assert tokens == "-" or measured.tokens == pytest.approx(int(tokens), rel=0.25)  # prompts are reworded now and then
