"""Whether `graphs.auto` gains by what it has learned of its stages: `python -m bench.game24.stages`.

The recorded games come one after the other, in seeded orders, as tasks come to whoever works. What a run keeps of its
stages (`stages`) is there for all that follow. Beside it stand the same games with the same samples, without it.
"""

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from bench.game24.auto import LIMITS, Solver, Won, difference
from bench.game24.budgets import BUDGETS, MOST, recorded_games
from bench.game24.cost import Entry, play
from reflective_agents.graphs import auto

ORDERS = 4
"""Seeded orders of the games, each with a history of its own."""


class Compared(NamedTuple):
    """For each game how often it was solved over the orders, 0..1: with what was learned, and without."""

    learned: Won
    fixed: Won


async def compared(unit: str, budget: int, orders: int = ORDERS) -> tuple[Compared, Compared]:
    """Run `auto` on all games within a budget, in each order with and without what it learns.

    Returns:
        The games of all orders, and as far as they came in the second half of an order.
    """
    learned, fixed, places = [], [], []
    for order in range(orders):
        games = random.Random(order).sample(recorded_games(), len(recorded_games()))
        solved = partial(_solved, games, order, {"max_model_calls": 10 * MOST, LIMITS[unit]: budget})
        learned.append(await solved(stages=f"{unit} {budget} {order}"))
        fixed.append(await solved(stages=None))
        places.append([games.index(game) for game in recorded_games()])
    late = np.array(places) >= len(recorded_games()) // 2
    return over_orders(learned, fixed, np.ones_like(late)), over_orders(learned, fixed, late)


async def _solved(games: Sequence[str], order: int, given: dict[str, int], stages: str | None) -> dict[str, float]:
    entry = Entry(auto.graph, {**given, "stages": stages, "seed": order})
    played = [await play(entry, game, Solver(game, order), given["max_model_calls"]) for game in games]
    return {game: float(one.solved) for game, one in zip(games, played, strict=True)}


def over_orders(
    learned: Sequence[Mapping[str, float]], fixed: Sequence[Mapping[str, float]], counts: NDArray[np.bool_]
) -> Compared:
    """Average over those orders of each game that count; a game without any is left out."""
    some = counts.any(axis=0)
    means = (
        np.average([[one[game] for game in recorded_games()] for one in runs], axis=0, weights=counts + 1e-12)
        for runs in (learned, fixed)
    )
    return Compared(*(mean[some] for mean in means))


def row(unit: str, budget: int, all_games: Compared, late: Compared) -> str:
    """Format what was solved within a budget, as shares."""
    return f"| {budget} {unit} | " + " | ".join(cell for half in (all_games, late) for cell in _cells(half)) + " |"


def _cells(games: Compared) -> Iterator[str]:
    number = len(games.fixed)
    least, most = difference(games.learned, games.fixed)
    yield f"{games.fixed.mean():.1%}"
    yield f"{games.learned.mean():.1%}"
    yield f"{(games.learned - games.fixed).mean():+.1%} ({least / number:+.0%} to {most / number:+.0%})"


async def main() -> None:
    """Print the table."""
    print("| budget | all: without | with | difference | second half: without | with | difference |")
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    cases = [(unit, budget) for unit in LIMITS for budget in BUDGETS[unit]]
    for unit, budget in track(cases, "budgets", console=Console(stderr=True), transient=True):
        print(row(unit, budget, *await compared(unit, budget)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
