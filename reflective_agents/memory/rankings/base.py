"""A ranking of memories: a value that says what the three terms of Generative Agents (section 4.1) are, and their
weights.

The others are one file each, which this folder names; a ranking of one's own can stand anywhere.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from reflective_agents.memory.postings import Postings, Rows
from reflective_agents.memory.scoring import Floats
from reflective_agents.memory.timeline import Timeline
from reflective_agents.state.errors import Misuse


class MemoryQuery(NamedTuple):
    """What is looked for: its vector, how much that says beside the words, its words, and the periods it names; `found`
    has what the store's own index finds for it, by its id, and how well that fits."""

    vector: NDArray[np.float32]
    meaning: float = 1.0
    words: frozenset[str] = frozenset()
    stems: frozenset[int] = frozenset()
    periods: Sequence[tuple[float, float]] = ()
    found: Mapping[str, float] = MappingProxyType({})


class Memories(Protocol):
    """The memories of an agent as a ranking sees them: rows of columns, in no particular order.

    Attributes:
        line: The same memories in the order of time.
        postings: Which words are in which rows.
        speakers: The number of each speaker in the column "speaker".
    """

    @property
    def line(self) -> Timeline:
        """The memories in the order of time."""
        ...

    @property
    def postings(self) -> Postings:
        """Which words are in which rows."""
        ...

    @property
    def speakers(self) -> Mapping[str, int]:
        """The number of each speaker in the column "speaker"."""
        ...

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of `memory.columns.COLUMNS`."""
        ...

    def row(self, memory_id: str) -> int | None:
        """Return the row of a memory; None if there is none with this id."""
        ...

    async def cosines(self, vector: Floats) -> Floats:
        """Return the cosine of each row with a vector."""
        ...


@dataclass(frozen=True)
class Ranking(ABC):
    """How memories are ranked: how much each of three terms counts, of which only the ratios matter, and what they are.

    Attributes:
        recency: Weight of the first term, 0 or more.
        importance: Weight of the second.
        relevance: Weight of the third.
        as_published: Whether all around it is as the paper has it: what is in the archive is left out, facts come by
            rank, and insights are asked for and kept as they are drawn.
        searches_store: Whether the store's own index is asked what fits a query.
        lower: What is left of a score in the archive, or of what no longer holds, in 0..1.
    """

    recency: float
    importance: float
    relevance: float
    as_published: ClassVar[bool] = False
    searches_store: ClassVar[bool] = False
    lower: ClassVar[float] = 1.0

    @abstractmethod
    async def terms(self, query: MemoryQuery, memories: Memories, now: float) -> tuple[Rows, list[Floats]]:
        """Return rows, in any order, and their recency, importance and relevance, before they are scaled to 0..1.

        Args:
            query: What is looked for.
            memories: All of them; rows that are no memories any more are passed over later.
            now: Seconds of the agent's clock.
        """

    @property
    def weights(self) -> tuple[float, float, float]:
        """The weights of the three terms."""
        return self.recency, self.importance, self.relevance

    def check(self) -> Self:
        """Check this ranking and return it.

        Raises:
            Misuse: if a weight is negative or not finite, or all are 0.
        """
        are_possible = all(math.isfinite(weight) and weight >= 0 for weight in self.weights)
        if not are_possible or not any(self.weights):
            raise Misuse(f"weights are numbers of 0 or more, and not all 0: {self.weights}")
        return self
