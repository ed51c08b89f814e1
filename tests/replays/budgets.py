"""Searches at equal numbers of calls: how many games of 24 each solves with the same recorded model."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphs import ab_mcts, best_of_n, lats, tree_of_thoughts
from testing.fake import FakeChatModel
from tests.replays.cached24 import Player, Recorded
from tests.replays.records import Record

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


SEARCHES: Mapping[str, Entry] = {
    "lats": Entry(lats.graph, fixed(n=8, max_rollouts=30, max_lessons=0)),
    "tree of thoughts, breadth first": Entry(tree_of_thoughts.graph, fixed(n=8, beam=5, lists=3, parallel=1)),
    "tree of thoughts, depth first": Entry(
        tree_of_thoughts.graph, fixed(method="depth_first", n=8, lists=3, max_states=1000)
    ),
    "ab_mcts": Entry(ab_mcts.graph, fixed(max_expansions=10_000, max_depth=4)),
    "best of n": Entry(best_of_n.graph, lambda calls: {"n": max(calls // 4, 1), "max_depth": 4, "parallel": 1}),
}


async def solved(entry: Entry, tasks: Sequence[str], player: Callable[[], Player], calls: int) -> int:
    """How many tasks a search solves with so many calls each."""
    settings = PLAIN | entry.settings(calls) | {"max_model_calls": calls, "max_total_tokens": 10**8}

    async def one(task: str) -> bool:
        asked = {"messages": [("user", task)], "task": {"id": task, "question": task}}
        out = await entry.graph.ainvoke(asked, context={**settings, "model": FakeChatModel(reply=player())})
        return bool(out["outcome"]["status"] == "solved")

    return sum([await one(task) for task in tasks])


async def table(records: Sequence[Record], tasks: Sequence[str]) -> dict[str, list[int]]:
    """Tasks solved by each search, for each number of calls."""
    return {
        name: [await solved(entry, tasks, lambda: Recorded(records), calls) for calls in BUDGETS]
        for name, entry in SEARCHES.items()
    }


if __name__ == "__main__":
    from tests.conftest import RECORDED
    from tests.replays.records import load

    games = [record["task"]["input"] for record in load(RECORDED, "tot_game24_bfs")]
    for name, counts in asyncio.run(table(load(RECORDED, "game24_llm_cache"), games)).items():
        print(f"{name:35}", *(f"{count:4}" for count in counts))
