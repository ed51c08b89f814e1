"""The ranking of Generative Agents (arXiv 2304.03442, section 4.1): recency since the last access, and the cosine."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reflective_agents.memory.postings import Rows
from reflective_agents.memory.rankings.base import Memories, MemoryQuery, Ranking
from reflective_agents.memory.scoring import Floats, recency


@dataclass(frozen=True)
class Paper(Ranking):
    """The paper's terms and weights."""

    recency: float = 1.0
    importance: float = 1.0
    relevance: float = 1.0
    as_published: ClassVar[bool] = True

    async def terms(self, query: MemoryQuery, memories: Memories, now: float) -> tuple[Rows, list[Floats]]:
        """Return all rows, and their recency, importance and relevance as the paper has them."""
        accessed = memories.column("accessed")
        cosines = await memories.cosines(query.vector)
        return np.arange(len(accessed)), [recency(accessed, now), memories.column("importance"), cosines]


RANKING = Paper(recency=0.5, importance=2.0, relevance=3.0)
"""With the weights of the paper's published code."""
