"""its_hub's votes that stop early, on the same recorded answers in the same orders as ours: rows of docs/sampling.md.

python -m bench.game24.its_hub    # the first time it is installed, into the user's cache folder
"""

import json
import random
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bench.game24.sampling import CRITERIA, DATA, Game, Table, elected, measured, recorded, report
from bench.peers import drivers
from bench.peers.environments import prepare, version
from bench.recorded import RECORDED
from bench.replays.records import load

PEER = "its-hub"
DRIVER = Path(drivers.__file__).parent / "its_hub_voting.py"
ALGORITHMS = ("BetaSelfConsistency", "AdaptiveSelfConsistency")
UNREADABLE = {False: "as it is", True: "unreadable answers apart"}
"""Answers that cannot be read vote alike in the peer; where they are kept apart, each is an answer of its own."""
OURS = ("Beta, 0.95, 1 at once", "all 100")
ORDERS = 20
"""The first of the orders of the other tables."""


def orders(games: Sequence[Game]) -> Iterator[list[str]]:
    """Yield the answers to each game in each order, as `sampling.measured` draws them."""
    for game in games:
        for seed in range(ORDERS):
            yield random.Random(seed).sample(game.answers, len(game.answers))


def told_apart(answers: Sequence[str]) -> list[str]:
    """Give each answer that cannot be read a text of its own."""
    return [answer or f"unreadable {place}" for place, answer in enumerate(answers)]


def ask(python: Path, drawn: Iterable[Sequence[str]]) -> list[str]:
    """Let the peer vote on answers, and return what it prints."""
    lines = "".join(f"{json.dumps(answers)}\n" for answers in drawn)
    done = subprocess.run([python, DRIVER], input=lines, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def tables(games: Sequence[Game], printed: Iterable[str], how: str) -> dict[str, Table]:
    """Read what the peer has printed: for each algorithm the samples, and whether they elect what all do and what is
    right."""
    made = {f"its_hub {version(PEER)}: {name}, {how}": np.zeros((len(games), ORDERS, 3)) for name in ALGORITHMS}
    for number, (line, answers) in enumerate(zip(printed, orders(games), strict=True)):
        place, seed = divmod(number, ORDERS)
        for table, (drawn, winner) in zip(made.values(), json.loads(line), strict=True):
            table[place, seed] = drawn, winner == elected(answers), winner in games[place].right
    return made


def main() -> None:
    """Print the rows of the peer under ours."""
    games = [recorded(record) for record in load(RECORDED, DATA)]
    found = measured(games, {name: CRITERIA[name] for name in OURS}, ORDERS)
    python = prepare(PEER)
    for apart, how in UNREADABLE.items():
        drawn = map(told_apart, orders(games)) if apart else orders(games)
        found |= tables(games, ask(python, drawn), how)
    print("\n".join(report(found)))


if __name__ == "__main__":
    main()
