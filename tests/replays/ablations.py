"""What each part of LATS is worth: games of 24 solved without it, with 40 calls each, and with as many as it wants."""

import asyncio
from typing import Any

from graphs import lats
from tests.conftest import RECORDED
from tests.replays.budgets import Entry, fixed, solved
from tests.replays.cached24 import Recorded
from tests.replays.records import load

AS_SET: dict[str, Any] = {"n": 8, "max_rollouts": 30, "max_lessons": 0}
ABLATIONS: dict[str, dict[str, Any]] = {
    "as set: n 8, K 30, w 1, lambda 0.5": {},
    "without judge: lambda 0": {"judge_weight": 0.0},
    "without self-consistency: lambda 1": {"judge_weight": 1.0},
    "without simulation": {"simulate": False},
    "w 0": {"exploration_weight": 0.0},
    "w 2": {"exploration_weight": 2.0},
    "n 3": {"n": 3},
    "n 5": {"n": 5},
    "one list of proposals": {"lists": 1},
}
CALLS = (40, 100_000)


async def main() -> None:
    """Print the table."""
    records = load(RECORDED, "game24_llm_cache")
    games = [record["task"]["input"] for record in load(RECORDED, "tot_game24_bfs")]
    for name, changed in ABLATIONS.items():
        entry = Entry(lats.graph, fixed(**AS_SET | changed))
        counts = [await solved(entry, games, lambda: Recorded(records), calls) for calls in CALLS]
        print(f"{name:40}", *(f"{count:4}" for count in counts), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
