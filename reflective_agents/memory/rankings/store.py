"""The ranking by the index of the store itself, such as pgvector's: the search happens there, not in this process."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reflective_agents.memory.postings import Rows
from reflective_agents.memory.rankings.base import Memories, MemoryQuery, Ranking
from reflective_agents.memory.scoring import Floats, lateness


@dataclass(frozen=True)
class StoreSearch(Ranking):
    """How well the store says that a memory fits, beside importance and a recency that fades slowly."""

    recency: float = 0.3
    importance: float = 0.6
    relevance: float = 3.0
    lower: ClassVar[float] = 0.9
    searches_store: ClassVar[bool] = True

    async def terms(self, query: MemoryQuery, memories: Memories, now: float) -> tuple[Rows, list[Floats]]:
        """Return all rows, and their lateness, importance and fit; what the store has not found fits least."""
        created = memories.column("created")
        fitting = np.full(len(created), min(query.found.values(), default=0.0), np.float32)
        for memory_id, fit in query.found.items():
            row = memories.row(memory_id)
            if row is not None:  # another process may have added it since
                fitting[row] = fit
        return np.arange(len(created)), [lateness(created, now), memories.column("importance"), fitting]


RANKING = StoreSearch()
