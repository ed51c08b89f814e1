"""What a long memory costs: retrieval beside a plain loop over all memories, start-up, and bytes a memory."""

import asyncio
import gc
import random
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import accumulate
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.sqlite.aio import AsyncSqliteStore
from numpy.typing import NDArray

from bench.rows import Row
from reflective_agents.cli.database import write_ahead
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.state.memories import Memory, new_memory

DIMENSIONS, FOUND, ROUNDS = 384, 30, 20
WORDS, VOCABULARY, ASKED = 30, 20_000, 8
"""Words of a memory, words there are, the more frequent the earlier (Zipf's law), and words of a question."""
OWNER = "bench"


class Noise(Embeddings):
    """Vectors without meaning, which take no time worth measuring."""

    model = "noise"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text, the same for the same text."""
        return [vector_of(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self.embed_documents([text])[0]


def vector_of(text: str) -> NDArray[np.float32]:
    """Return a unit vector without meaning."""
    vector = np.random.default_rng(crc32(text.encode())).standard_normal(DIMENSIONS, dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector))


def memories(count: int) -> list[Memory]:
    """Make memories of an agent to whom something is said every minute, in conversations of a hundred turns."""
    chance, say = random.Random(count), speaker_of(count)
    return [
        new_memory(
            f"{number:06d} {say(WORDS)}",
            created=60.0 * number,
            importance=chance.randint(1, 10),
            key=f"{number}",
            conversation=f"conversation {number // 100}",
        )
        for number in range(count)
    ]


def speaker_of(seed: int) -> Callable[[int], str]:
    """Return a function that makes texts of so many words."""
    chance, known = random.Random(seed), [f"w{number}" for number in range(VOCABULARY)]
    often = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    return lambda count: " ".join(chance.choices(known, cum_weights=often, k=count))


def measure_memory(count: int) -> list[Row]:
    """Measure a memory of so many entries in SQLite."""
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
    text = round(mean(len(memory["text"]) for memory in kept))
    return [
        Row(f"Memory of {count:,}: retrieval beyond the embedding", 1000 * here, "ms", 10, timed=True, digits=1),
        Row("  a plain loop over all memories, without the store", 1000 * loop, "ms", timed=True),
        Row("  that loop / retrieval here", loop / here, "", timed=True, digits=1),
        Row("  start-up", start, "s", timed=True, digits=2),
        Row("  adding a memory", 1000 * adding / count, "ms", timed=True, digits=2),
        Row(f"  bytes stored a memory, {text} of them text", stored / count, "", 2700),
        Row("  bytes held in the process a memory", held / count, "", 2500),
    ]


@asynccontextmanager
async def _opened(file: Path) -> AsyncIterator[AsyncSqliteStore]:
    """Open the store in a file, as the command does."""
    async with AsyncSqliteStore.from_conn_string(str(file)) as store:
        await store.setup()
        await write_ahead(store)
        yield store


async def _fill(store: AsyncSqliteStore, kept: list[Memory]) -> None:
    await (await MemoryStream.open(store, OWNER, Noise())).add(kept)


async def _retrieval(store: AsyncSqliteStore, kept: list[Memory]) -> float:
    """Return the median time of several retrievals by words and meaning, each of which renews what it finds."""
    stream, say = await MemoryStream.open(store, OWNER, Noise()), speaker_of(1)
    taken = []
    for number in range(ROUNDS + 1):
        query, now = f"{number:06d} {say(ASKED)}", 60.0 * (len(kept) + number)
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
    """Return the best of three timings of the obvious version: a loop with a dot product for each memory."""
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
