"""Whole searches against chance: what a graph solves agrees with what was computed, and is more than one shot."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bench.game24.chance import BLIND, GAMES, SEARCHES, Chance, P, measure, options

RUNS = 30


@pytest.mark.thorough
@pytest.mark.parametrize("name", SEARCHES)
async def test_a_graph_solves_as_many_as_was_computed_and_more_than_one_shot(name: str) -> None:
    measured, computed = await measure(SEARCHES[name], RUNS), SEARCHES[name].computed
    assert measured.agrees_with(computed), (measured, measured.interval, computed)
    assert measured.beats(BLIND) or computed == BLIND, (measured, measured.interval)


class Misled(Chance):
    """Takes what is lost for won."""

    def labels(self, numbers: str) -> Sequence[str]:
        return ["impossible" if super().labels(numbers) == ["sure"] else "sure"]


@pytest.mark.thorough
async def test_a_search_that_takes_the_bad_for_good_is_found_out() -> None:
    entry = replace(SEARCHES["lats, n 3, K 1"], model=lambda seed: Misled(P, seed))
    measured = await measure(entry, RUNS)
    assert measured.interval[1] < entry.computed, (measured, measured.interval, entry.computed)


@pytest.mark.parametrize("game", GAMES)
def test_in_the_games_each_step_may_be_right_or_wrong_and_no_two_ways_meet_before_the_end(game: str) -> None:
    level = [game]
    for _ in range(2):
        assert all(options(numbers).right and options(numbers).wrong for numbers in level)
        level = [rest for numbers in level for rest in options(numbers).right]
        assert len(level) == len(set(level))
    assert all([*options(numbers).right] == ["24"] and options(numbers).wrong for numbers in level)
