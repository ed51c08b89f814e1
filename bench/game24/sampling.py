"""When to stop sampling: what the Beta criterion and equal windows save on recorded answers, and what that costs.

python -m bench.game24.sampling    # the tables of docs/sampling.md

100 chains of thought that GPT-4 was recorded to write on each game, in 100 seeded orders. Neither the right answer nor
the reward stops a run. The criterion is chosen on one half of the games, and reported on the other.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from langchain_core.messages import AIMessage
from numpy.typing import NDArray

from bench.options import parser_of
from bench.recorded import RECORDED
from bench.replays.records import Record, load
from reflective_agents.environments.game24 import Game24
from reflective_agents.graphs.chain_of_thought import read, voting
from reflective_agents.nodes.asking.sampling import majority

DATA = "tot_game24_cot100"
ORDERS, DRAWS = 100, 2000
BATCHES = (1, 5)
"""Samples that are asked for at once."""
AGREEMENT = 0.99
"""Share of the runs that have to elect what all samples elect, for a criterion to be chosen."""
LEVELS = (0.6, 0.7, 0.8, 0.85, 0.88, 0.9, 0.95, 0.98, 0.99, 0.999)
WINDOWS = (2, 3, 4, 5, 8)
Stops = Callable[[Sequence[str], Sequence[float], int], bool]
"""Tells from the answers in order, and the chance after each that the leader stays ahead, whether to stop after k."""
Table = NDArray[np.float64]
"""Per game and order: samples drawn, whether they elect what all do, whether that is right."""


class Game(NamedTuple):
    """The recorded answers to a game in normal form, in the order of recording, and which of them are right."""

    answers: list[str]
    right: frozenset[str]


def recorded(record: Record) -> Game:
    """Read the recorded samples of a game; those that do not vote have an empty answer."""
    samples = [read(AIMessage(output["text"]), Game24(), "") for output in record["outputs"]]
    voters = [sample if sample in voting(samples) else None for sample in samples]
    answers = [sample["normal"] if sample else "" for sample in voters]
    verdicts = zip(answers, record["verdict"]["r"], strict=True)
    return Game(answers, frozenset(answer for answer, right in verdicts if right == "1"))


def beta(confidence: float) -> Stops:
    """Stop once the leader stays ahead with this chance (Adaptive-Consistency, arXiv 2305.11860)."""
    return lambda answers, chances, k: chances[k - 1] >= confidence


def window(size: int) -> Stops:
    """Stop at a batch of this size whose answers are all the same (ESC, arXiv 2401.10480)."""

    def agree(answers: Sequence[str], chances: Sequence[float], k: int) -> bool:
        last = {*answers[k - size : k]}
        return k % size == 0 and len(last) == 1 and "" not in last

    return agree


def _criteria() -> dict[str, tuple[Stops, int]]:
    criteria: dict[str, tuple[Stops, int]] = {}
    for batch, level in product(BATCHES, LEVELS):
        criteria[f"Beta, {level}, {batch} at once"] = beta(level), batch
    for size in WINDOWS:
        criteria[f"window of {size} (ESC)"] = window(size), size
    criteria["all 100"] = lambda answers, chances, k: False, 1
    return criteria


CRITERIA: Mapping[str, tuple[Stops, int]] = _criteria()

_majority = cache(majority)


def chances(answers: Sequence[str]) -> list[float]:
    """Calculate after each answer the chance that the leader stays ahead."""
    votes, found = Counter[str](), []
    for answer in answers:
        votes.update([answer] if answer else [])
        counts = [count for _, count in votes.most_common(2)]
        found.append(_majority(counts[0], counts[1] if counts[1:] else 0) if counts else 0.0)
    return found


def elected(answers: Sequence[str]) -> str:
    """Return the answer that most give, the first of equals; empty where there is none."""
    votes = Counter(filter(None, answers))
    return votes.most_common(1)[0][0] if votes else ""


def measured(
    games: Sequence[Game], orders: int, criteria: Mapping[str, tuple[Stops, int]] = CRITERIA
) -> dict[str, Table]:
    """Run each criterion on all games, in so many orders."""
    tables = {name: np.zeros((len(games), orders, 3)) for name in criteria}
    for index, game in enumerate(games):
        for seed in range(orders):
            answers = random.Random(seed).sample(game.answers, len(game.answers))
            known, expected = chances(answers), elected(answers)
            for name, (stops, batch) in criteria.items():
                ends = (k for k in range(batch, len(answers), batch) if stops(answers, known, k))
                drawn = next(ends, len(answers))
                winner = elected(answers[:drawn])
                tables[name][index, seed] = drawn, winner == expected, winner in game.right
    return tables


def choose(tables: Mapping[str, Table]) -> str:
    """Return the criterion with the fewest samples among those that agree often enough."""
    safe = {name: table[..., 0].mean() for name, table in tables.items() if table[..., 1].mean() >= AGREEMENT}
    return min(safe, key=lambda name: safe[name])


def cell(table: Table, column: int, times: float, digits: int) -> str:
    """Format a mean with its 95 % interval, by drawing games with replacement."""
    games = table[..., column].mean(axis=1) * times
    drawn = np.random.default_rng(0).choice(games, (DRAWS, len(games))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{games.mean():.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def report(tables: Mapping[str, Table]) -> Iterator[str]:
    """Format a table as Markdown."""
    yield "| criterion | samples | elects what all 100 elect, % | right, % |"
    yield "|---|--:|--:|--:|"
    for name, table in tables.items():
        cells = (cell(table, column, times, 1) for column, times in ((0, 1), (1, 100), (2, 100)))
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the curve on all games, and the criterion chosen on one half as it does on the other."""
    options = parser_of("bench.game24.sampling", __doc__).parse_args()
    records = load(RECORDED, DATA)[: 4 if options.quick else None]
    tables = measured([recorded(record) for record in records], 2 if options.quick else ORDERS)
    print("\n".join(report(tables)), "\n")
    chosen = choose({name: table[::2] for name, table in tables.items()})
    print(f"Chosen on every other game: {chosen}. On the others:\n")
    print("\n".join(report({name: tables[name][1::2] for name in (chosen, "all 100")})))


if __name__ == "__main__":
    main()
