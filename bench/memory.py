"""What a long memory costs: retrieval beside a plain loop over all memories, start-up, and bytes a memory."""

import asyncio
import gc
import random
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.sqlite.aio import AsyncSqliteStore
from numpy.typing import NDArray

from bench.rows import Row
from cli.database import write_ahead
from memory.stream import MemoryStream
from state.memories import Memory, new_memory

MEMORIES, DIMENSIONS, FOUND, ROUNDS = 100_000, 384, 30, 20
TEXT = 200
"""Characters of a memory."""
OWNER = "bench"


class Noise(Embeddings):
    """Vectors without meaning, which take no time worth measuring."""

    model = "noise"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text, the same for the same text."""
        return [vector_of(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return self.embed_documents([text])[0]


def vector_of(text: str) -> NDArray[np.float32]:
    """A unit vector of no meaning."""
    vector = np.random.default_rng(len(text) + int(text[:6])).standard_normal(DIMENSIONS, dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector))


def memories(count: int) -> list[Memory]:
    """Memories of an agent to whom something happens every minute."""
    chance = random.Random(count)
    return [
        new_memory(
            f"{number:06d} ".ljust(TEXT, "x"), created=60.0 * number, importance=chance.randint(1, 10), key=f"{number}"
        )
        for number in range(count)
    ]


def measure_memory(count: int = MEMORIES) -> list[Row]:
    """A memory of 100,000 in SQLite."""
    with TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder) / "memory.sqlite", count))


async def _measure(file: Path, count: int) -> list[Row]:
    kept = memories(count)
    async with _opened(file) as store:
        adding = await _seconds(lambda: _fill(store, kept))
    stored = sum(part.stat().st_size for part in file.parent.iterdir())
    async with _opened(file) as store:
        start = await _seconds(lambda: MemoryStream.open(store, OWNER, Noise()))
        here = await _retrieval(store, kept)
    async with _opened(file) as store:
        held = await _bytes_held(store)
    loop = _plain_loop(kept)
    return [
        Row(f"Memory of {count:,}: retrieval beyond the embedding", 1000 * here, "ms", 20, timed=True, digits=1),
        Row("  a plain loop over all memories, without the store", 1000 * loop, "ms", timed=True),
        Row("  that loop / retrieval here", loop / here, "", timed=True, digits=1),
        Row("  start-up", start, "s", timed=True, digits=2),
        Row("  adding a memory", 1000 * adding / count, "ms", timed=True, digits=2),
        Row("  bytes stored a memory, 200 of them text", stored / count, "", 2500),
        Row("  bytes held in the process a memory", held / count, "", 2500),
    ]


@asynccontextmanager
async def _opened(file: Path) -> AsyncIterator[AsyncSqliteStore]:
    """The store in a file, as the command opens it."""
    async with AsyncSqliteStore.from_conn_string(str(file)) as store:
        await store.setup()
        await write_ahead(store)
        yield store


async def _fill(store: AsyncSqliteStore, kept: list[Memory]) -> None:
    await (await MemoryStream.open(store, OWNER, Noise())).add(kept)


async def _retrieval(store: AsyncSqliteStore, kept: list[Memory]) -> float:
    """The median of several retrievals, each of which renews what it finds."""
    stream = await MemoryStream.open(store, OWNER, Noise())
    taken = []
    for number in range(ROUNDS + 1):
        query, now = vector_of(f"{number:06d}"), 60.0 * (len(kept) + number)
        taken.append(await _seconds(lambda: stream.retrieve(query, k=FOUND, now=now)))  # noqa: B023 - awaited at once
    return median(taken[1:])


async def _bytes_held(store: AsyncSqliteStore) -> float:
    gc.collect()
    tracemalloc.start()
    stream = await MemoryStream.open(store, OWNER, Noise())
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del stream
    return held


def _plain_loop(kept: list[Memory]) -> float:
    """The best of three rounds of what one would write first: a loop with a product of vectors for each memory."""
    vectors = [vector_of(memory["text"]) for memory in kept]
    query, now = vector_of("000001"), 60.0 * len(kept)

    def scaled(values: list[float]) -> list[float]:
        low, high = min(values), max(values)
        return [(value - low) / (high - low) for value in values]

    taken = []
    for _ in range(3):
        started = time.perf_counter()
        recency = scaled([0.995 ** ((now - memory["accessed"]) / 3600) for memory in kept])
        importance = scaled([memory["importance"] for memory in kept])
        relevance = scaled([float(vector @ query) for vector in vectors])
        scores = [sum(terms) for terms in zip(recency, importance, relevance, strict=True)]
        sorted(range(len(kept)), key=scores.__getitem__, reverse=True)[:FOUND]
        taken.append(time.perf_counter() - started)
    return min(taken)


async def _seconds(work: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started
