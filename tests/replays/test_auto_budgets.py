"""What `auto` solves within a budget that it is told, beside every fixed strategy: the tables of docs/auto.md."""

import re
from pathlib import Path

import numpy as np
import pytest

from bench.game24 import auto
from bench.game24.budgets import BUDGETS, recorded_games
from bench.game24.cost import Entry, interval, play
from reflective_agents.graphs.auto import graph as auto_graph

LONGER = [
    pytest.param(*each, marks=pytest.mark.published)
    for each in (("requests", 10), ("requests", 40), ("tokens", 10_000))
]
PAGE = (Path(__file__).parents[2] / "docs" / "auto.md").read_text()


def on_the_page(unit: str) -> dict[int, str]:
    """The cells of `auto` by budget."""
    _, _, table = PAGE.partition(f"| {unit} | auto |")
    return {int(budget): cell for budget, cell in re.findall(r"^\| (\d+) \| ([^|]+) \|", table, re.MULTILINE)[:5]}


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("unit", "budget"), [("requests", 5), *LONGER])
async def test_the_page_shows_what_auto_solves(unit: str, budget: int, recorded: Path) -> None:
    won = await auto.auto_within(unit, budget, recorded_games())
    low, high = interval(float(won.sum()), len(won))
    assert on_the_page(unit)[budget] == f"{won.sum():.1f} ({100 * low:.0f} to {100 * high:.0f} %)"


def test_the_page_has_every_budget() -> None:
    assert [[*on_the_page(unit)] for unit in auto.LIMITS] == [[*BUDGETS[unit]] for unit in auto.LIMITS]


@pytest.mark.thorough
async def test_a_budget_is_never_exceeded_and_more_solves_more(recorded: Path) -> None:
    solved = []
    for budget in (5, 40):
        entry = Entry(auto_graph, {})
        games = [await play(entry, game, auto.Solver(game, 0), budget) for game in recorded_games()[:8]]
        assert max(game.spent.requests for game in games) <= budget
        solved.append(sum(game.solved for game in games))
    assert solved[0] < solved[1]


def test_a_difference_is_none_where_the_same_is_solved_and_certain_where_all_is() -> None:
    all_, none = np.ones(20), np.zeros(20)
    assert auto.difference(all_, all_) == (0, 0)
    assert auto.difference(all_, none) == (20, 20)
    low, high = auto.difference(np.array([1.0, 0.0] * 10), none)
    assert 0 < low < 10 < high < 20


def test_the_line_of_a_budget_names_the_best_and_the_gap() -> None:
    row = auto.line(5, np.array([1.0] * 5 + [0.0] * 5), "lats", np.array([1.0] * 4 + [0.0] * 6))
    assert row.startswith("| 5 | 5.0 (19 to 81 %) | 4.0 | lats | +1.0 (")
