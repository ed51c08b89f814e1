"""Searches on real proposals and values: what they solve at equal cost, beside the ceiling of the proposals."""

import random
import re
from pathlib import Path

import pytest

from bench.game24.ablations import LESSONS
from bench.game24.budgets import (
    BUDGETS,
    MOST,
    SAMPLED,
    SEARCHES,
    Row,
    as_recorded,
    ceiling,
    recorded_games,
    sampled_row,
    search_row,
)
from bench.game24.cost import Cost, Game, best_of, interval, play, play_all, sign_test, solved_within
from bench.game24.learner import Learner
from bench.game24.recorded import left
from bench.replays.records import manifest

CACHE = "game24_llm_cache"
PAGE = Path(__file__).parents[2] / "docs" / "search-results.md"
TOGETHER = "lats, judged together"


def on_the_page(search: str) -> Row:
    """The cells of a search in each of the tables."""
    rows = re.findall(rf"^\| {re.escape(search)} \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    return {unit: [cell.strip() for cell in row.split("|")] for unit, row in zip(BUDGETS, rows, strict=False)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Left: 3 8.", "3 8"), ("Left: 5.5.", "11/2"), ("Left: 9 -1 3/2\nNext", "-1 3/2 9"), ("Left: 1 2. Left: 4", "4")],
)
def test_the_model_reads_what_is_left_last(text: str, expected: str) -> None:
    assert left(text) == expected


@pytest.mark.thorough
def test_the_ceiling_is_the_recorded_one(recorded: Path) -> None:
    assert ceiling() == manifest(recorded)[CACHE]["expected"]["dev"]["reachable_valid_24"]


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "search", [pytest.param(name, marks=[] if name == TOGETHER else [pytest.mark.published]) for name in SEARCHES]
)
async def test_the_page_shows_what_each_search_solves(search: str, recorded: Path) -> None:
    games = await play_all(SEARCHES[search], recorded_games(), as_recorded, MOST)
    assert on_the_page(search) == search_row(games)
    assert solved_within(games, "requests", MOST) <= ceiling()


@pytest.mark.thorough
@pytest.mark.parametrize("samples", SAMPLED)
async def test_the_page_shows_what_recorded_samples_solve(samples: str, recorded: Path) -> None:
    assert on_the_page(samples) == await sampled_row(SAMPLED[samples], recorded_games())


@pytest.mark.thorough
async def test_a_run_under_a_lower_limit_takes_the_same_way(recorded: Path) -> None:
    for game in random.Random(0).sample(recorded_games(), 8):
        free, held = [await play(SEARCHES[TOGETHER], game, as_recorded(), most) for most in (MOST, 20)]
        assert held == free if held.solved else free.spent >= held.spent


async def test_each_sample_and_each_token_counts(recorded: Path) -> None:
    game = await play(SEARCHES["best_of_n, until the calls are spent"], recorded_games()[0], as_recorded(), 20)
    assert game.spent.samples >= game.spent.requests > 0
    assert 17 < game.spent.requests <= 20 or game.solved, "it ends when another step might not fit"
    listed = await play(SEARCHES["lats"], recorded_games()[0], as_recorded(), 4)
    assert listed.spent.samples > listed.spent.requests


def test_a_game_counts_where_it_was_cheap_enough() -> None:
    games = [Game(True, Cost(5, 10, 100)), Game(True, Cost(6, 6, 60)), Game(False, Cost(1, 1, 1))]
    assert [solved_within(games, unit, 6) for unit in BUDGETS] == [2, 1, 0]
    assert solved_within(games, "tokens", 100) == 2


def test_the_best_of_samples() -> None:
    assert best_of(right=1, drawn=4, k=1) == 0.25
    assert best_of(right=1, drawn=4, k=2) == 0.5
    assert best_of(right=0, drawn=4, k=4) == 0
    assert best_of(right=1, drawn=4, k=9) == 1


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    assert interval(0, 10) == pytest.approx((0, 0.3085), abs=1e-4)
    assert interval(5, 10) == pytest.approx((0.1871, 0.8129), abs=1e-4)
    assert interval(10, 10) == pytest.approx((0.6915, 1), abs=1e-4)


def test_the_sign_test_counts_the_games_that_only_one_has_solved() -> None:
    better, other = [True] * 6 + [False, True], [False] * 6 + [False, True]
    assert sign_test(better, other) == (6, 0, 2 / 64)
    assert sign_test(other, other) == (0, 0, 1)


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [24, pytest.param(None, marks=pytest.mark.published)], ids=["a sample", "all"])
async def test_a_lesson_is_worth_its_call(count: int | None, recorded: Path) -> None:
    games = recorded_games()
    games = games if count is None else random.Random(0).sample(games, count)
    played = [await play_all(LESSONS[name], games, Learner, 40) for name in ("1 lesson", "no lessons")]
    taught, untaught = ([game.solved for game in row] for row in played)
    only_taught, only_untaught, chance = sign_test(taught, untaught)
    assert only_taught > only_untaught
    assert chance < 0.05 or count


@pytest.mark.thorough
@pytest.mark.published
async def test_lats_solves_nearly_all_that_can_be_solved(recorded: Path) -> None:
    games = await play_all(SEARCHES["lats"], recorded_games(), as_recorded, 80)
    assert sum(game.solved for game in games) >= 0.95 * ceiling()
