"""Searches at equal numbers of calls: how many games of 24 each solves with the same recorded model.

python -m tests.replays.budgets            # the whole table
python -m tests.replays.budgets rap lats   # the rows whose names hold one of these words
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rich.console import Console
from rich.progress import track

from graphs import ab_mcts, best_of_n, lats, rap, tree_of_thoughts
from testing.fake import FakeChatModel
from tests.conftest import RECORDED
from tests.replays.cached24 import Player, Recorded, reachable
from tests.replays.records import Record, load

BUDGETS = (5, 10, 20, 40, 80)
PLAIN: dict[str, Any] = {"environment": "game24", "search": "none", "examples": False}


@dataclass(frozen=True)
class Entry:
    """A search with its settings, which may depend on the number of calls."""

    graph: Any
    settings: Callable[[int], dict[str, Any]]


def fixed(**settings: Any) -> Callable[[int], dict[str, Any]]:
    """Settings that are the same for every number of calls."""
    return lambda _: settings


LATS: dict[str, Any] = {"n": 8, "max_rollouts": 30, "max_lessons": 0}
BEAM: dict[str, Any] = {"n": 8, "beam": 5, "lists": 3, "parallel": 1}
RAP: dict[str, Any] = {"n": 8, "max_rollouts": 1000, "max_depth": 4, "confidence_samples": 1}
TOGETHER: dict[str, Any] = {"grades": "judge", "grading": "together", "max_answer_tokens": 8000}
"""Judged in one call, with room for the judgements of a whole level."""

SEARCHES: Mapping[str, Entry] = {
    "lats": Entry(lats.graph, fixed(**LATS)),
    "lats, judged together": Entry(lats.graph, fixed(**LATS, **TOGETHER)),
    "lats, without judge": Entry(lats.graph, fixed(**LATS, judge_weight=0)),
    "tree_of_thoughts, breadth first": Entry(tree_of_thoughts.graph, fixed(**BEAM)),
    "tree_of_thoughts, breadth first, judged together": Entry(tree_of_thoughts.graph, fixed(**BEAM, **TOGETHER)),
    "tree_of_thoughts, depth first": Entry(
        tree_of_thoughts.graph, fixed(method="depth_first", n=8, lists=3, max_states=1000)
    ),
    "rap, by likelihood": Entry(rap.graph, fixed(**RAP)),
    "rap, judged together": Entry(rap.graph, fixed(**RAP, action_reward="judge")),
    "ab_mcts": Entry(ab_mcts.graph, fixed(max_expansions=10_000, max_depth=4)),
    "best_of_n": Entry(best_of_n.graph, lambda calls: {"n": max(calls // 4, 1), "max_depth": 4, "parallel": 1}),
}


async def solved(entry: Entry, tasks: Sequence[str], player: Callable[[], Player], calls: int) -> int:
    """How many tasks a search solves with so many calls each."""
    settings = PLAIN | entry.settings(calls) | {"max_model_calls": calls, "max_total_tokens": 10**8}

    async def one(task: str) -> bool:
        asked = {"messages": [("user", task)], "task": {"id": task, "question": task}}
        out = await entry.graph.ainvoke(asked, context={**settings, "model": FakeChatModel(reply=player())})
        return bool(out["outcome"]["status"] == "solved")

    return sum([await one(task) for task in tasks])


@cache
def recorded_games() -> list[str]:
    """The games of the recorded run."""
    return [record["task"]["input"] for record in load(RECORDED, "tot_game24_bfs")]


@cache
def _said() -> list[Record]:
    return load(RECORDED, "game24_llm_cache")


def as_recorded() -> Recorded:
    """A model that says what GPT-4 has said."""
    return Recorded(_said())


def ceiling() -> int:
    """How many of the games GPT-4's proposals can solve."""
    lists = as_recorded().proposals
    return sum(reachable(game, lists) for game in recorded_games())


async def show(
    rows: Mapping[str, Entry], columns: Sequence[int], most: int, player: Callable[[], Player] = as_recorded
) -> None:
    """Print the rows of a table whose names hold a word of the command line: games solved, and their share of `most`.

    Standard error says how far it is.
    """
    words = sys.argv[1:] or [""]
    chosen = [name for name in rows if any(word in name for word in words)]
    cells = [(name, calls) for name in chosen for calls in columns]
    counts = {
        (name, calls): await solved(rows[name], recorded_games(), player, calls)
        for name, calls in track(cells, "games of 24", console=Console(stderr=True), transient=True)
    }
    for name in chosen:
        shown = (f"{counts[name, calls]} ({100 * counts[name, calls] / most:.0f} %)" for calls in columns)
        print(f"| {name} |", " | ".join(shown), "|")


if __name__ == "__main__":
    asyncio.run(show(SEARCHES, BUDGETS, ceiling()))
