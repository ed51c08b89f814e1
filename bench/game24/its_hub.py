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
from bench.options import parser_of
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


def drawn(games: Sequence[Game], orders: int) -> Iterator[list[str]]:
    """Yield the answers to each game in each order, as `sampling.measured` draws them."""
    for game in games:
        for seed in range(orders):
            yield random.Random(seed).sample(game.answers, len(game.answers))


def told_apart(answers: Sequence[str]) -> list[str]:
    """Give each answer that cannot be read a text of its own."""
    return [answer or f"unreadable {number}" for number, answer in enumerate(answers)]


def ask(python: Path, votes: Iterable[Sequence[str]]) -> list[str]:
    """Let the peer vote on answers, and return what it prints."""
    lines = "".join(f"{json.dumps(answers)}\n" for answers in votes)
    done = subprocess.run([python, DRIVER], input=lines, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def tables(games: Sequence[Game], orders: int, printed: Iterable[str], how: str) -> dict[str, Table]:
    """Read what the peer has printed: for each algorithm the samples, and whether they elect what all do and what is
    right."""
    made = {f"its_hub {version(PEER)}: {name}, {how}": np.zeros((len(games), orders, 3)) for name in ALGORITHMS}
    for number, (line, answers) in enumerate(zip(printed, drawn(games, orders), strict=True)):
        game, seed = divmod(number, orders)
        for table, (samples, winner) in zip(made.values(), json.loads(line), strict=True):
            table[game, seed] = samples, winner == elected(answers), winner in games[game].right
    return made


def main() -> None:
    """Print the rows of the peer under ours."""
    options = parser_of("bench.game24.its_hub", __doc__).parse_args()
    games = [recorded(record) for record in load(RECORDED, DATA)[: 2 if options.quick else None]]
    orders = 1 if options.quick else ORDERS
    found = measured(games, orders, {name: CRITERIA[name] for name in OURS})
    python = prepare(PEER)
    for apart, how in UNREADABLE.items():
        votes = map(told_apart, drawn(games, orders)) if apart else drawn(games, orders)
        found |= tables(games, orders, ask(python, votes), how)
    print("\n".join(report(found)))


if __name__ == "__main__":
    main()
