"""Searches on real proposals and values: what they solve, beside the ceiling that the recorded proposals set."""

import re
from pathlib import Path

import pytest

from tests.replays.ablations import LESSONS
from tests.replays.budgets import BUDGETS, SEARCHES, as_recorded, ceiling, recorded_games, solved
from tests.replays.cached24 import left
from tests.replays.learner24 import Learner
from tests.replays.records import manifest

CACHE = "game24_llm_cache"
PAGE = Path(__file__).parents[2] / "docs" / "search.md"


def shown(search: str, calls: int) -> int:
    """Games solved as the page says."""
    row = re.search(rf"^\| {re.escape(search)} \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    assert row is not None
    return int(row[1].split("|")[BUDGETS.index(calls)].split()[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Left: 3 8.", "3 8"), ("Left: 5.5.", "11/2"), ("Left: 9 -1 3/2\nNext", "-1 3/2 9"), ("Left: 1 2. Left: 4", "4")],
)
def test_the_model_reads_what_is_left_last(text: str, expected: str) -> None:
    assert left(text) == expected


def test_the_ceiling_is_the_recorded_one(recorded: Path) -> None:
    assert ceiling() == manifest(recorded)[CACHE]["expected"]["dev"]["reachable_valid_24"]


async def test_the_page_shows_what_ten_calls_solve(recorded: Path) -> None:
    search = "lats, judged together"
    assert await solved(SEARCHES[search], recorded_games(), as_recorded, 10) == shown(search, 10)


async def test_a_lesson_is_worth_its_call(recorded: Path) -> None:
    games = recorded_games()[6:11]
    without, with_one = [await solved(LESSONS[name], games, Learner, 40) for name in ("no lessons", "1 lesson")]
    assert without < with_one


@pytest.mark.slow
async def test_lats_solves_nearly_all_that_can_be_solved(recorded: Path) -> None:
    count = await solved(SEARCHES["lats"], recorded_games(), as_recorded, 80)
    assert count == shown("lats", 80)
    assert count >= 51
