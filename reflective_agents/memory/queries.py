"""What is looked for in a memory, made ready for a ranking."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from langgraph.store.base import BaseStore
from numpy.typing import NDArray

from reflective_agents.memory.layout import Namespace, search
from reflective_agents.memory.postings import hashed
from reflective_agents.memory.rankings.base import MemoryQuery
from reflective_agents.state.errors import Misuse
from reflective_agents.text.dates import periods
from reflective_agents.text.stems import query_stems
from reflective_agents.text.words import words

FOUND = 200
"""Memories that the store's own index is asked for, of which importance and recency choose."""
Query = str | Sequence[float] | NDArray[np.floating]
"""What is looked for: a text, or its vector."""
Embed = Callable[[Sequence[str]], Awaitable[NDArray[np.float32]]]
"""Makes vectors of texts."""


async def prepare(queries: Sequence[Query], embed: Embed, meaning: float, now: float) -> list[MemoryQuery]:
    """Prepare queries; texts are embedded together, each once.

    Args:
        queries: Texts or vectors.
        embed: Makes vectors of texts.
        meaning: How much its vectors say of what a text means, as `models.embeddings.meaning_of`.
        now: Seconds of the agent's clock.

    Raises:
        Misuse: if a vector is impossible.
        ModelFailed, LimitReached: if a vector cannot be had.
    """
    texts = list(dict.fromkeys(query for query in queries if isinstance(query, str)))
    stemmed = asyncio.to_thread(lambda: [query_stems(text) for text in texts])
    vectors, found = await asyncio.gather(embed(texts), stemmed)
    by_text: dict[str, MemoryQuery] = {}
    for text, vector, stems in zip(texts, vectors, found, strict=True):
        hashes = frozenset(map(hashed, stems))
        by_text[text] = MemoryQuery(vector, meaning, frozenset(words(text)), hashes, periods(text, now))
    prepared: list[MemoryQuery] = []
    for query in queries:
        prepared.append(by_text[query] if isinstance(query, str) else MemoryQuery(_unit(query)))
    return prepared


async def search_store(store: BaseStore, texts: Namespace, query: Query) -> dict[str, float]:
    """Return what the store's own index finds for a text in a namespace of texts, and how well it fits.

    Raises:
        Misuse: if the query is a vector, or no memory is in such an index.
    """
    if not isinstance(query, str):
        raise Misuse("the index of a store is asked for a text, not for a vector")
    if not query.strip():
        return {}
    items = await search(store, texts, FOUND, query)
    found = {item.key: item.score for item in items if item.score is not None}
    if items and not found:
        raise Misuse(
            "no memory is in an index of the store's own: give the store one (InMemoryStore(index=...), or "
            "Postgres with pgvector), export what was kept without it and import it anew; or choose another ranking"
        )
    return found


def _unit(vector: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float32]:
    array = np.asarray(vector, dtype=np.float64)
    length = np.linalg.norm(array)
    if array.ndim != 1 or not math.isfinite(length):
        raise Misuse("a query is a text, or a vector of finite numbers")
    return np.asarray(array / length if length else array, dtype=np.float32)
