"""`graphs.auto` beside each fixed strategy at equal cost: `python -m bench.game24.auto` makes what docs/auto.md shows.

`auto` is told its budget, so it runs once for each. A fixed search takes the same way under any limit: one run tells
its whole row. Whole answers are the recorded samples of chain of thought, in a seeded order.
"""

import asyncio
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from bench.game24.budgets import BUDGETS, MOST, SAMPLED, SEARCHES, Sampled, as_recorded, recorded_games
from bench.game24.cost import Entry, Game, best_of, interval, play, play_all
from bench.game24.recorded import Player, Recorded
from bench.options import parser_of
from bench.recorded import RECORDED
from bench.replays.records import load
from reflective_agents.graphs import auto
from reflective_agents.testing.script import Reply, Request

LIMITS = {"requests": "max_model_calls", "tokens": "max_total_tokens"}
"""The setting that tells `auto` a budget, by unit."""
ORDERS = 2
"""Seeded orders of the samples, over which a figure is the mean."""
RESAMPLED = 10_000
"""Sets of games drawn for the interval of a difference."""
ANSWERS = "chain of thought, best of k"
Won = NDArray[np.float64]
"""For each game the chance that it is solved, 0..1."""


@cache
def _answers() -> Mapping[str, list[str]]:
    records = load(RECORDED, SAMPLED[ANSWERS])
    return {record["task"]["input"]: [output["text"] for output in record["outputs"]] for record in records}


class Solver(Player):
    """GPT-4 as it was recorded in two runs: whole answers from one, single steps and labels from the other.

    Args:
        game: The numbers.
        seed: The order of the whole answers.
    """

    def __init__(self, game: str, seed: int) -> None:
        self.recorded: Recorded = as_recorded()
        answers = _answers()[game]
        self.answers = iter(random.Random(f"{game} {seed}").sample(answers, len(answers)))

    def steps(self, numbers: str, request: Request) -> list[str]:
        """Return the lines of a recorded list."""
        return self.recorded.steps(numbers, request)

    def labels(self, numbers: str) -> Sequence[str]:
        """Return the recorded labels."""
        return self.recorded.labels(numbers)

    def __call__(self, request: Request) -> Reply:
        """Answer a request for a whole answer with the next sample."""
        return next(self.answers) if "by thinking step by step" in request.text else super().__call__(request)


class Row(NamedTuple):
    """What a strategy solves within each budget of a unit."""

    name: str
    won: list[Won]


async def auto_within(unit: str, budget: int, games: Sequence[str]) -> Won:
    """Run `auto` on games with a budget, which it is told."""
    limits = {"max_model_calls": 10 * MOST, LIMITS[unit]: budget}
    entry = Entry(auto.graph, limits)
    solved = np.zeros(len(games))
    for at, game in enumerate(games):
        for seed in range(ORDERS):
            played = await play(entry, game, Solver(game, seed), limits["max_model_calls"])
            solved[at] += played.solved / ORDERS
    return solved


async def fixed(games: Sequence[str]) -> dict[str, list[Row]]:
    """Run each fixed strategy once on games, and return its rows by unit."""
    rows: dict[str, list[Row]] = {unit: [] for unit in LIMITS}
    for name in track(SEARCHES, "fixed strategies", console=Console(stderr=True), transient=True):
        played = await play_all(SEARCHES[name], games, as_recorded, MOST)
        for unit, made in rows.items():
            made.append(Row(name, [_won(played, unit, budget) for budget in BUDGETS[unit]]))
    for name, data in SAMPLED.items():
        sampled = Sampled(data, games)
        each = await sampled.per_sample()
        chance = partial(_of_samples, sampled)
        for unit, made in rows.items():
            made.append(Row(name, [chance(int(budget / getattr(each, unit))) for budget in BUDGETS[unit]]))
    return rows


def _won(played: Sequence[Game], unit: str, budget: float) -> Won:
    return np.array([float(game.within(unit, budget)) for game in played])


def _of_samples(sampled: Sampled, k: int) -> Won:
    drawn = zip(sampled.right, sampled.drawn, strict=True)
    return np.array([best_of(right, count, min(k, sampled.most)) for right, count in drawn])


def difference(first: Won, second: Won) -> tuple[float, float]:
    """Return the 95 % interval of how many more games the first has won, by drawing sets of games with a fixed seed."""
    drawn = np.random.default_rng(0).integers(0, len(first), (RESAMPLED, len(first)))
    sums = (first - second)[drawn].sum(axis=1)
    low, high = np.quantile(sums, (0.025, 0.975))
    return float(low), float(high)


def lines(unit: str, own: Sequence[Won], rows: Sequence[Row]) -> Iterator[str]:
    """Format the table of a unit."""
    yield f"| {unit} | auto | the best fixed strategy | | difference |"
    yield "|--:|--:|--:|---|--:|"
    for at, budget in enumerate(BUDGETS[unit]):
        best = max(rows, key=lambda row: row.won[at].sum())
        yield line(budget, own[at], best.name, best.won[at])


def line(budget: int, own: Won, name: str, best: Won) -> str:
    """Format what is solved within one budget."""
    low, high = interval(float(own.sum()), len(own))
    least, most = difference(own, best)
    gap = f"{own.sum() - best.sum():+.1f} ({least:+.0f} to {most:+.0f})"
    return f"| {budget} | {own.sum():.1f} ({100 * low:.0f} to {100 * high:.0f} %) | {best.sum():.1f} | {name} | {gap} |"


async def main() -> None:
    """Print a table for each unit."""
    options = parser_of("bench.game24.auto", __doc__).parse_args()
    games = recorded_games()[: 1 if options.quick else None]
    rows = await fixed(games)
    for unit in LIMITS:
        shown = track(BUDGETS[unit], f"auto, by {unit}", console=Console(stderr=True), transient=True)
        auto_rows = [await auto_within(unit, budget, games) for budget in shown]
        print("\n".join(lines(unit, auto_rows, rows[unit])), end="\n\n")
        if unit == "tokens":
            others = [Row(row.name, [won[1::2] for won in row.won]) for row in rows[unit]]
            print("On every other game, by which nothing was chosen:\n")
            print("\n".join(lines(unit, [won[1::2] for won in auto_rows], others)))
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
