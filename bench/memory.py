"""What a long memory costs: retrieval beside a plain loop over all memories, start-up, and bytes a memory.

`python -m bench.memory [COUNT ...]` prints a table, of 1,000 and 100,000 memories unless other counts are given.
"""

import asyncio
import gc
import random
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.sqlite.aio import AsyncSqliteStore
from numpy.typing import NDArray

from bench.options import parser_of
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


class Time(NamedTuple):
    """Seconds that something takes, and those of the processor, to which waiting for other work does not add."""

    taken: float
    processor: float

    def of(self, count: int) -> "Time":
        """Return what one of so many takes."""
        return Time(self.taken / count, self.processor / count)

    def shown(self, unit: float, digits: int) -> str:
        """Format it in some unit, the time of the processor in brackets."""
        return f"{self.taken / unit:.{digits}f} ({self.processor / unit:.{digits}f})"


class Costs(NamedTuple):
    """What a memory of some size costs: retrieval, the same where a memory has been added since the one before,
    start-up, adding one, and bytes stored and held, both a memory."""

    retrieval: Time
    after_adding: Time
    start: Time
    adding: Time
    stored: float
    held: float


async def _costs(file: Path, kept: list[Memory]) -> Costs:
    async with _opened(file) as store:
        adding = await _seconds(lambda: _fill(store, kept))
    stored = sum(part.stat().st_size for part in file.parent.iterdir())
    async with _opened(file) as store:
        start = await _seconds(lambda: _open(store, kept))
        retrieval, after_adding = await _retrieval(store, kept)
    async with _opened(file) as store:
        held = await _bytes_held(store, kept)
    return Costs(retrieval, after_adding, start, adding.of(len(kept)), stored / len(kept), held / len(kept))


async def _measure(file: Path, count: int) -> list[Row]:
    kept = memories(count)
    costs, loop = await _costs(file, kept), _plain_loop(kept)
    text = round(mean(len(memory["text"]) for memory in kept))
    return [
        Row(
            f"Memory of {count:,}: retrieval beyond the embedding",
            1000 * costs.retrieval.taken,
            "ms",
            10,
            timed=True,
            digits=1,
        ),
        Row("  a plain loop over all memories, without the store", 1000 * loop, "ms", timed=True),
        Row("  that loop / retrieval here", loop / costs.retrieval.taken, "", timed=True, digits=1),
        Row("  start-up", costs.start.taken, "s", timed=True, digits=2),
        Row("  adding a memory", 1000 * costs.adding.taken, "ms", timed=True, digits=2),
        Row(f"  bytes stored a memory, {text} of them text", costs.stored, "", 2700),
        Row("  bytes held in the process a memory", costs.held, "", 1200),
    ]


def table(counts: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a table of what memories of these sizes cost."""
    yield "| memories | retrieval, ms | after adding one, ms | start-up, s | adding one, ms | bytes stored | held |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for count in counts:
        with TemporaryDirectory() as folder:
            costs = asyncio.run(_costs(Path(folder) / "memory.sqlite", memories(count)))
        yield (
            f"| {count:,} | {costs.retrieval.shown(1e-3, 1)} | {costs.after_adding.shown(1e-3, 1)} "
            f"| {costs.start.shown(1, 2)} | {costs.adding.shown(1e-3, 2)} | {costs.stored:,.0f} | {costs.held:,.0f} |"
        )


@asynccontextmanager
async def _opened(file: Path) -> AsyncIterator[AsyncSqliteStore]:
    """Open the store in a file, as the command does."""
    async with AsyncSqliteStore.from_conn_string(str(file)) as store:
        await store.setup()
        await write_ahead(store)
        yield store


async def _open(store: AsyncSqliteStore, kept: list[Memory]) -> MemoryStream:
    return await MemoryStream.open(store, OWNER, Noise(), max_memories=len(kept))


async def _fill(store: AsyncSqliteStore, kept: list[Memory]) -> None:
    await (await _open(store, kept)).add(kept)


async def _retrieval(store: AsyncSqliteStore, kept: list[Memory]) -> tuple[Time, Time]:
    """Return the median times of several retrievals by words and meaning, each of which renews what it finds: where
    nothing has changed, and where a memory has been added before each."""
    stream, say = await MemoryStream.open(store, OWNER, Noise(), max_memories=2 * len(kept)), speaker_of(1)

    async def timed(number: int) -> Time:
        query, now = f"{number:06d} {say(ASKED)}", 60.0 * (len(kept) + number)
        return await _seconds(lambda: stream.retrieve(query, k=FOUND, now=now))

    again = [await timed(number) for number in range(ROUNDS + 1)][1:]
    after_adding = list[Time]()
    for number in range(ROUNDS):
        text = say(WORDS)
        await stream.add([new_memory(text, created=60.0 * (len(kept) + number), key=text, conversation="now")])
        after_adding.append(await timed(number))
    return _median(again), _median(after_adding)


def _median(times: Sequence[Time]) -> Time:
    return Time(median(each.taken for each in times), median(each.processor for each in times))


async def _bytes_held(store: AsyncSqliteStore, kept: list[Memory]) -> float:
    gc.collect()
    tracemalloc.start()
    stream = await _open(store, kept)
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


async def _seconds(work: Callable[[], Awaitable[Any]]) -> Time:
    started, worked = time.perf_counter(), time.process_time()
    await work()
    return Time(time.perf_counter() - started, time.process_time() - worked)


def main() -> None:
    """Print the table."""
    ask = parser_of("bench.memory", __doc__)
    ask.add_argument("counts", type=int, nargs="*", default=[1_000, 100_000], help="memories")
    given = ask.parse_args()
    for line in table([100] if given.quick else given.counts):
        print(line, flush=True)


if __name__ == "__main__":
    main()
