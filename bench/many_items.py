"""How long a name that is full takes to look up, count and merge items: `python -m bench.many_items` prints the table
of docs/memory.md, with the lexical embedding, in memory and in SQLite. No model takes part.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore

from bench.options import parser_of
from reflective_agents.memory.exchange import merge_items
from reflective_agents.memory.items import MOST, Items
from reflective_agents.nodes.remembering.experience import LOOKED_AT
from reflective_agents.state.experience import Event, Item, new_item
from reflective_agents.state.memories import memory_id

WORDS = (
    "sum",
    "length",
    "unit",
    "year",
    "month",
    "label",
    "donor",
    "pool",
    "train",
    "clock",
    "prime",
    "opening",
    "tide",
)
OTHERS = 100
"""Items that are merged: half of them are known in the same words."""


def words(chance: random.Random, count: int) -> str:
    """Return some words."""
    return " ".join(chance.choices(WORDS, k=count))


def made(count: int, first: int = 0) -> list[Item]:
    """Make items, each of a kind of its own."""
    chances = [random.Random(number) for number in range(first, first + count)]
    return [
        new_item(
            memory_id(f"item {number}"),
            f"Item {number}",
            words(chance, 12),
            words(chance, 20),
            kind="success",
            created=1.0,
        )
        for number, chance in enumerate(chances, first)
    ]


async def seconds(work: Awaitable[object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def row(name: str, store: BaseStore, known: Sequence[Item], repeats: int) -> str:
    """Measure a store, as a line of the table."""
    items = await Items.open(store, "experience/many", "lexical", most=len(known) + OTHERS)
    await items.add(known)
    questions = [words(random.Random(f"question {number}"), 12) for number in range(repeats)]
    look_ups = [await seconds(items.nearest(question, 3 + LOOKED_AT)) for question in questions]
    shown = {item["id"]: Event(what="shown", at=2.0, solved=True) for item in known[:3]}
    counts = [await seconds(items.record(f"run {number}", shown)) for number in range(repeats)]
    same: list[Item] = [{**item, "id": memory_id(f"other {item['id']}")} for item in known[: OTHERS // 2]]
    merging = await seconds(merge_items(items, [*same, *made(OTHERS // 2, len(known))]))
    look_up, count = (1000 * sorted(times)[len(times) // 2] for times in (look_ups, counts))
    return f"| {name} | {len(known):,} | {look_up:.0f} | {count:.1f} | {merging:.1f} |"


async def report(count: int, repeats: int) -> None:
    """Print the table."""
    known = made(count)
    print(f"| store | items | a look-up, ms | counting three, ms | merging {OTHERS} others, s |")
    print("|---|--:|--:|--:|--:|")
    print(await row("memory", InMemoryStore(), known, repeats), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncSqliteStore.from_conn_string(str(Path(folder) / "memory.sqlite")) as store:
            await store.setup()
            print(await row("SQLite", store, known, repeats))


def main() -> None:
    """Measure a name that is full."""
    given = parser_of("bench.many_items", __doc__).parse_args()
    asyncio.run(report(200 if given.quick else MOST, 3 if given.quick else 21))


if __name__ == "__main__":
    main()
