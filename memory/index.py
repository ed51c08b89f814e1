"""What a process knows of one agent's memories without their texts: columns to score over, and what rests on what.

It is a cache of what lies in the store, may be dropped at any time, and knows nothing of the store.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory import scoring
from memory.scoring import Weights
from state.memories import KINDS, Kind, Mark

OBSERVATION, REFLECTION = KINDS.index("observation"), KINDS.index("reflection")
COLUMNS: dict[str, Any] = {
    "id": "S32",
    "kind": np.int8,
    "created": np.float64,
    "accessed": np.float64,
    "importance": np.float64,
    "archived": np.bool_,
    "carries": np.bool_,  # whether other memories rest on it
}


class Facts(NamedTuple):
    """What the index is told of a memory."""

    id: str
    kind: Kind
    created: float
    importance: float
    evidence: tuple[str, ...] = ()


class Found(NamedTuple):
    """The id of a memory that was retrieved, its score, and the three normalised terms that make it."""

    id: str
    score: float
    recency: float
    importance: float
    relevance: float


class Index:
    """The memories of one agent, in the first `len(index)` rows of each column, in no particular order.

    A memory is archived while a reflection rests on it, unless it is a reflection itself: what is archived follows
    from the evidence, so that the two cannot contradict each other.
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._columns = {name: np.zeros(0, kind) for name, kind in COLUMNS.items()}
        self._vectors = np.zeros((0, 0), np.float32)
        self._evidence: dict[str, tuple[str, ...]] = {}
        self._resting: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._rows

    @property
    def dimensions(self) -> int:
        """The length of the vectors; 0 as long as there was none."""
        return self._vectors.shape[1]

    def add(self, facts: Sequence[Facts], vectors: NDArray[np.float32]) -> None:
        """Add memories with their vectors, a row each; one that is known already stays as it is."""
        new = {one.id: place for place, one in enumerate(facts) if one.id not in self}
        if not new:
            return
        facts, vectors = [facts[place] for place in new.values()], vectors[list(new.values())]
        start, end = len(self), len(self) + len(new)
        self._reserve(end, vectors.shape[1])
        self._vectors[start:end] = vectors
        created = [one.created for one in facts]
        values = {
            "id": [one.id for one in facts],
            "kind": [KINDS.index(one.kind) for one in facts],
            "created": created,
            "accessed": created,
            "importance": [one.importance for one in facts],
        }
        for name, column in self._columns.items():
            column[start:end] = values.get(name, False)
        self._rows.update({one.id: row for row, one in enumerate(facts, start)})
        for one in facts:
            if one.evidence or one.id in self._resting:
                self._connect(one)

    def _reserve(self, rows: int, dimensions: int) -> None:
        """Make room: a quarter more than there was, so that adding takes constant time on average."""
        if rows <= len(self._vectors):
            return
        used, size = len(self), max(rows, len(self._vectors) * 5 // 4)
        vectors = np.zeros((size, dimensions), np.float32)
        vectors[:used] = self._vectors[:used] if used else 0
        self._vectors = vectors
        for name, column in self._columns.items():
            self._columns[name] = np.zeros(size, column.dtype)
            self._columns[name][:used] = column[:used]

    def _connect(self, one: Facts) -> None:
        evidence = tuple(below for below in one.evidence if below != one.id)
        if evidence:
            self._evidence[one.id] = evidence
        for below in evidence:
            self._resting.setdefault(below, set()).add(one.id)
        self._settle([one.id, *evidence])

    def _settle(self, ids: Iterable[str]) -> None:
        """Bring up to date what follows from the evidence."""
        kind, archived, carries = (self._columns[name] for name in ("kind", "archived", "carries"))
        for memory_id in ids:
            if memory_id in self:
                row, above = self._rows[memory_id], self._resting.get(memory_id, ())
                reflected_on = any(kind[self._rows[one]] == REFLECTION for one in above)
                archived[row] = reflected_on and kind[row] != REFLECTION
                carries[row] = bool(above)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove memories; what only they kept in the archive comes out of it. Unknown ids are passed over."""
        for memory_id in ids:
            row = self._rows.pop(memory_id, None)
            if row is None:
                continue
            last = len(self)
            if row != last:  # the last row fills the gap
                self._vectors[row] = self._vectors[last]
                for column in self._columns.values():
                    column[row] = column[last]
                self._rows[self._columns["id"][row].decode()] = row
            evidence = self._evidence.pop(memory_id, ())
            for below in evidence:
                self._resting[below].discard(memory_id)
                if not self._resting[below]:
                    del self._resting[below]
            self._settle(evidence)

    def renew(self, accessed: Mapping[str, float]) -> dict[str, float]:
        """Set when memories were last accessed, never back; returns those for which that is news."""
        later = {one: at for one, at in accessed.items() if one in self and at > self.accessed(one)}
        for one, at in later.items():
            self._columns["accessed"][self._rows[one]] = at
        return later

    def accessed(self, memory_id: str) -> float:
        """When a memory was last accessed."""
        return float(self._columns["accessed"][self._rows[memory_id]])

    def archived(self, memory_id: str) -> bool:
        """Whether a memory is in the archive."""
        return bool(self._columns["archived"][self._rows[memory_id]])

    def evidence(self, memory_id: str) -> list[str]:
        """The memories below one, level by level, each once; those that were deleted are missing."""
        return [one for one in _reach(memory_id, self._evidence) if one in self]

    def derived(self, memory_id: str) -> list[str]:
        """The memories above one, level by level, each once."""
        return _reach(memory_id, self._resting)

    def chronological(self) -> list[str]:
        """The ids of all memories, those in the archive too, by creation, and by id where that is the same."""
        ids = self._used("id")
        return _decoded(ids[np.lexsort((ids, self._used("created")))])

    def latest(self, count: int, kinds: Collection[Kind] = KINDS) -> list[str]:
        """The ids of the latest memories outside the archive, the latest one last."""
        wanted = np.isin(self._used("kind"), [KINDS.index(kind) for kind in kinds]) & ~self._used("archived")
        rows = np.flatnonzero(wanted)
        ids, created = self._used("id"), self._used("created")
        rows = rows[scoring.highest(created[rows], count)]
        rows = rows[np.lexsort((ids[rows], created[rows]))]
        return _decoded(ids[rows[max(len(rows) - count, 0) :]])

    async def retrieve(self, query: NDArray[np.float32], k: int, now: float, weights: Weights) -> list[Found]:
        """The k best memories outside the archive for a query vector, the best one first."""
        if not len(self):
            return []
        cosines = await scoring.relevance(self._vectors[: len(self)], query)
        kept = np.flatnonzero(~self._used("archived"))
        rows = kept if len(kept) < len(self) else slice(None)  # a slice copies nothing
        terms = (
            scoring.normalise(scoring.recency(self._used("accessed")[rows], now)),
            scoring.normalise(self._used("importance")[rows]),
            scoring.normalise(cosines[rows]),
        )
        scores = scoring.score(terms, weights)
        ids = self._used("id")[rows]
        places = scoring.best(scores, self._used("created")[rows], ids, k)
        columns = (column[places].tolist() for column in (scores, *terms))
        return [Found(*row) for row in zip(_decoded(ids[places]), *columns, strict=True)]

    def pending(self, since: Mark) -> tuple[float, Mark]:
        """The importance of all observations after a place in the stream, and the place of the latest of them."""
        ids, created = self._used("id"), self._used("created")
        after = (created > since.created) | ((created == since.created) & (ids > since.id.encode()))
        rows = np.flatnonzero(after & (self._used("kind") == OBSERVATION))
        if not len(rows):
            return 0.0, since
        last = rows[np.lexsort((ids[rows], created[rows]))[-1]]
        return float(self._used("importance")[rows].sum()), Mark(float(created[last]), ids[last].decode())

    def trim(self, limit: int) -> list[str]:
        """Remove what is least worth keeping until so many memories are left, and return the ids of what went.

        Evidence is never forgotten before what rests on it. Of the memories on which no other rests, those go first
        whose recency and importance, normalised as for retrieval and with equal weights, are lowest.
        """
        gone: list[str] = []
        while (surplus := len(self) - limit) > 0:
            free = np.flatnonzero(~self._used("carries"))
            rows = free if len(free) else np.arange(len(self))
            accessed, ids = self._used("accessed")[rows], self._used("id")[rows]
            worth = scoring.normalise(scoring.recency(accessed, float(accessed.max())))
            worth = worth + scoring.normalise(self._used("importance")[rows])
            going = _decoded(ids[scoring.best(-worth, -self._used("created")[rows], ids, surplus)])
            self.remove(going)
            gone += going
        return gone

    def _used(self, column: str) -> NDArray[Any]:
        return self._columns[column][: len(self)]


def _decoded(ids: NDArray[np.bytes_]) -> list[str]:
    return [one.decode() for one in ids.tolist()]


def _reach(start: str, edges: Mapping[str, Collection[str]]) -> list[str]:
    """Everything that can be reached, nearest first, and by id within a level."""
    found, level, reached = {start}, [start], list[str]()
    while level:
        level = sorted({other for one in level for other in edges.get(one, ())} - found)
        found.update(level)
        reached += level
    return reached
