"""Searches on real proposals and values: what LATS solves, beside the ceiling that the recorded proposals set."""

from pathlib import Path

import pytest

from tests.replays.budgets import SEARCHES, solved
from tests.replays.cached24 import Recorded, reachable
from tests.replays.records import load, manifest

CACHE = "game24_llm_cache"
EVERY = 100_000
"""More calls than any of these searches makes."""


def games(recorded: Path) -> list[str]:
    return [record["task"]["input"] for record in load(recorded, "tot_game24_bfs")]


def test_the_ceiling_is_the_recorded_one(recorded: Path) -> None:
    model = Recorded(load(recorded, CACHE))
    expected = manifest(recorded)[CACHE]["expected"]["dev"]["reachable_valid_24"]
    assert sum(reachable(game, model.proposals) for game in games(recorded)) == expected


@pytest.mark.slow
async def test_lats_solves_nearly_all_that_can_be_solved(recorded: Path) -> None:
    records = load(recorded, CACHE)
    assert await solved(SEARCHES["lats"], games(recorded), lambda: Recorded(records), EVERY) >= 51
