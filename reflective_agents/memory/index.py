"""What a process knows of one agent's memories without their texts: columns to score over, and what rests on what.

It is a cache of what lies in the store, may be dropped at any time, and knows nothing of the store.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflective_agents.memory import scoring
from reflective_agents.memory.columns import COLUMNS, Columns
from reflective_agents.memory.entries import Entry, Match
from reflective_agents.memory.grounds import Grounds
from reflective_agents.memory.postings import Postings, Rows
from reflective_agents.memory.rankings.base import MemoryQuery, Ranking
from reflective_agents.memory.scoring import Floats, Halves
from reflective_agents.memory.timeline import Timeline
from reflective_agents.state.memories import KINDS, TOPICS, Kind, Mark

OBSERVATION, REFLECTION, FACT = map(KINDS.index, ("observation", "reflection", "fact"))
UNKNOWN, OTHER = -1, TOPICS.index("other")
HOLES = 1024
"""Rows of removed memories, beyond which the others are packed, and beyond a quarter of all."""


class Index:
    """The memories of one agent, in rows of columns, in no particular order.

    A memory is archived while a reflection rests on it, unless it is a reflection itself; it no longer holds while
    another supersedes it. Both follow from what memories name, so that nothing can contradict itself.
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._columns = Columns()
        self._grounds = Grounds()
        self._supersedes: dict[str, tuple[str, ...]] = {}
        self._until_is_current = True
        self._postings = Postings()
        self._speakers, self._conversations = _Names(), _Names()
        self._line: Timeline | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._rows

    @property
    def dimensions(self) -> int:
        """The length of the vectors; 0 as long as there was none."""
        return self._columns.dimensions

    def add(self, entries: Sequence[Entry], vectors: Halves) -> None:
        """Add memories with their vectors, a row each; one that is known already stays as it is."""
        new = {entry.id: index for index, entry in enumerate(entries) if entry.id not in self}
        if not new:
            return
        entries = [entries[index] for index in new.values()]
        eighths, scales = scoring.rounded(vectors[[*new.values()]])
        start = len(self._columns)
        self._columns.add(eighths, self._values(start, entries) | {"scale": scales})
        self._rows |= {entry.id: row for row, entry in enumerate(entries, start)}
        self._line = None
        for entry in entries:
            below = self._grounds.add(entry.id, entry.evidence)
            if below or self._grounds.above(entry.id):
                self._update_flags([entry.id, *below])
            if entry.supersedes:
                self._supersedes[entry.id] = entry.supersedes
        self._until_is_current &= not self._supersedes

    def _values(self, start: int, entries: Sequence[Entry]) -> dict[str, Any]:
        """Return what the columns hold of entries in the rows from `start` on."""
        ids, kinds, created, importance, _, speakers, conversations, _, words, topics, asks = zip(*entries, strict=True)
        return {
            "id": ids,
            "kind": list(map(KINDS.index, kinds)),
            "created": created,
            "accessed": created,
            "importance": importance,
            "alive": True,
            "until": math.inf,
            "speaker": list(map(self._speakers.number, speakers)),
            "conversation": list(map(self._conversations.number, conversations)),
            "topic": [TOPICS.index(topic) if topic else UNKNOWN for topic in topics],
            "asks": asks,
            "length": self._postings.add(start, words),
        }

    def _update_flags(self, ids: Iterable[str]) -> None:
        """Bring up to date what follows from the evidence."""
        kind, archived, carries = self._columns["kind"], self._columns["archived"], self._columns["carries"]
        for memory_id in ids:
            if memory_id in self:
                row, above = self._rows[memory_id], self._grounds.above(memory_id)
                reflected_on = any(kind[self._rows[upper]] == REFLECTION for upper in above)
                archived[row] = reflected_on and kind[row] != REFLECTION
                carries[row] = bool(above)

    def _until(self) -> NDArray[np.float64]:
        """Return since when each row no longer holds.

        Superseded memories no longer hold, nor do the earlier reflections that rest on them or on what they were drawn
        from.
        """
        until = self._columns["until"]
        if not self._until_is_current:
            until[:] = math.inf
            for later, superseded in self._supersedes.items():
                since = self._columns["created"][self._rows[later]]
                rows = [self._rows[earlier] for earlier in superseded if earlier in self and earlier != later]
                sources = chain.from_iterable(map(self._grounds.below, superseded))
                rows += self._drawn_from([*superseded, *sources], since)
                until[rows] = np.minimum(until[rows], since)
            self._until_is_current = True
        return until

    def _drawn_from(self, ids: Iterable[str], before: float) -> list[int]:
        """Return the rows of the reflections that rest on any of these memories and were made before a time."""
        kind, created = self._columns["kind"], self._columns["created"]
        rows: list[int] = []
        for upper in set[str]().union(*map(self.derived, ids)):
            row = self._rows[upper]
            if kind[row] == REFLECTION and created[row] < before:
                rows.append(row)
        return rows

    def remove(self, ids: Iterable[str]) -> None:
        """Remove memories; what only they kept in the archive comes out of it, and what only they superseded holds
        again. Unknown ids are passed over."""
        for memory_id in ids:
            row = self._rows.pop(memory_id, None)
            if row is None:
                continue
            self._columns["alive"][row] = False
            self._columns.vectors[row] = 0
            self._line = None
            if self._supersedes.pop(memory_id, None):
                self._until_is_current = False
            self._update_flags(self._grounds.remove(memory_id))
        if len(self._columns) - len(self) > max(HOLES, len(self) // 3):
            self.arrange()

    def arrange(self) -> None:
        """Put the rows into the order of time, in which they are read fastest, without gaps."""
        order = self.line.order
        new_rows = np.full(len(self._columns), -1)
        new_rows[order] = np.arange(len(order))
        self._postings.move(new_rows)
        self._columns.order(order)
        self._rows = {memory_id: int(new_rows[row]) for memory_id, row in self._rows.items()}
        self._line = None

    def renew(self, accessed: Mapping[str, float]) -> dict[str, float]:
        """Set when memories were last accessed, never back; returns those for which that is news."""
        later: dict[str, float] = {}
        for memory_id, at in accessed.items():
            if memory_id in self and at > self.accessed(memory_id):
                self._columns["accessed"][self._rows[memory_id]] = at
                later[memory_id] = at
        return later

    def accessed(self, memory_id: str) -> float:
        """Return when a memory was last accessed."""
        return float(self._columns["accessed"][self._rows[memory_id]])

    def archived(self, memory_id: str) -> bool:
        """Tell whether a memory is in the archive."""
        return bool(self._columns["archived"][self._rows[memory_id]])

    def until(self, memory_id: str) -> float | None:
        """Return since when a memory no longer holds; None if it does."""
        until = float(self._until()[self._rows[memory_id]])
        return until if math.isfinite(until) else None

    def entry(self, memory_id: str) -> Entry:
        """Return what was added to the index for a memory, without its words."""
        row, columns = self._rows[memory_id], self._columns
        topic = columns["topic"].item(row)
        return Entry(
            memory_id,
            KINDS[columns["kind"].item(row)],
            columns["created"].item(row),
            columns["importance"].item(row),
            self._grounds.below(memory_id),
            self._speakers.names[columns["speaker"].item(row)],
            self._conversations.names[columns["conversation"].item(row)],
            self._supersedes.get(memory_id, ()),
            topic=None if topic == UNKNOWN else TOPICS[topic],
            asks=columns["asks"].item(row),
        )

    def evidence(self, memory_id: str) -> list[str]:
        """Return the memories below one, level by level, without repetitions; deleted memories are missing."""
        return [below for below in self._grounds.all_below(memory_id) if below in self]

    def derived(self, memory_id: str) -> list[str]:
        """Return the memories above one, level by level, without repetitions."""
        return self._grounds.all_above(memory_id)

    def chronological(self) -> list[str]:
        """Return the ids of all memories, including the archive, by creation, and by id where that is the same."""
        rows = np.flatnonzero(self._columns["alive"])
        return self._ids_by_time(rows)

    def latest(self, count: int, kinds: Collection[Kind] = KINDS, *, archived: bool = False) -> list[str]:
        """Return the ids of the latest memories, the latest last; those in the archive only if asked for."""
        rows = np.flatnonzero(self._of_kinds(kinds) & (archived | ~self._columns["archived"]))
        rows = rows[scoring.highest(self._columns["created"][rows], count)]
        return self._ids_by_time(rows)[-count:] if count > 0 else []

    def facts(self, count: int) -> list[str]:
        """Return the ids of so many facts that still hold: first those of the profile, and of these the most important,
        and of these the latest. A fact on an unknown topic may belong to the profile."""
        holding = self._columns["alive"] & (self._columns["kind"] == FACT) & np.isinf(self._until())
        rows = np.flatnonzero(holding)
        ids = self._columns["id"][rows]
        created = self._columns["created"][rows]
        importance = self._columns["importance"][rows]
        is_of_profile = self._columns["topic"][rows] != OTHER
        order = np.lexsort((ids, created, importance, is_of_profile))[::-1]
        return _decoded(ids[order[:count]])

    def _of_kinds(self, kinds: Collection[Kind]) -> NDArray[np.bool_]:
        alive, kind = self._columns["alive"], self._columns["kind"]
        if len(kinds) == len(KINDS):
            return alive.copy()
        return np.asarray(alive & np.isin(kind, [KINDS.index(name) for name in kinds]))

    def _ids_by_time(self, rows: NDArray[np.intp]) -> list[str]:
        ids = self._columns["id"][rows]
        return _decoded(ids[np.lexsort((ids, self._columns["created"][rows]))])

    async def retrieve(
        self,
        query: MemoryQuery,
        k: int,
        now: float,
        ranking: Ranking,
        kinds: Collection[Kind] = KINDS,
        apart_from: str = "",
        facts: int = 0,
    ) -> list[Match]:
        """Retrieve the k best memories for a query, and the foremost facts, best first.

        Args:
            query: What is looked for.
            k: How many at most.
            now: Seconds of the agent's clock.
            ranking: How they are ranked.
            kinds: What kinds of memories.
            apart_from: A conversation whose turns are passed over.
            facts: How many of the facts that still hold are found whatever fits better.
        """
        eligible = self._of_kinds(kinds)
        if ranking.as_published:
            eligible &= ~self._columns["archived"]
        if apart_from in self._conversations.numbers and apart_from:
            elsewhere = self._columns["conversation"] != self._conversations.numbers[apart_from]
            eligible &= elsewhere | (self._columns["kind"] == FACT)
        if not eligible.any():
            return []
        rows, terms = await ranking.terms(query, self, now)
        if len(rows) < len(self._columns) or not eligible.all():
            positions = np.flatnonzero(eligible[rows])
            rows, terms = rows[positions], [term[positions] for term in terms]
        terms = [scoring.normalise(term) for term in terms]
        scores = scoring.score(terms, ranking.weights)
        if ranking.lower < 1:
            lowered = self._columns["archived"] | np.isfinite(self._until())
            if lowered.any():
                scores[lowered[rows]] *= ranking.lower
        foremost = [self._rows[memory_id] for memory_id in self.facts(facts)] if facts else []
        return self._best(k, rows, scores, terms, foremost)

    def _best(
        self, k: int, rows: Rows, scores: Floats, terms: Sequence[Floats], foremost: Sequence[int]
    ) -> list[Match]:
        """Return the k best of these rows, and those that are foremost, best first."""
        top = scoring.highest(scores, k)
        top = top[scoring.best(scores[top], self._columns["created"][rows[top]], self._columns["id"][rows[top]], k)]
        if foremost:
            top = np.union1d(top, np.flatnonzero(np.isin(rows, foremost)))
        ids, created = self._columns["id"][rows[top]], self._columns["created"][rows[top]]
        order = scoring.best(scores[top], created, ids, len(top))
        columns = (column[top[order]].tolist() for column in (scores, *terms))
        return [Match(*row) for row in zip(_decoded(ids[order]), *columns, strict=True)]

    @property
    def line(self) -> Timeline:
        """The memories in the order of time."""
        if self._line is None:
            columns = {name: self._columns[name] for name in COLUMNS}
            self._line = Timeline(columns, columns["kind"] == OBSERVATION)
        return self._line

    @property
    def postings(self) -> Postings:
        """Which words are in which rows."""
        return self._postings

    @property
    def speakers(self) -> Mapping[str, int]:
        """The number of each speaker in the column "speaker"."""
        return self._speakers.numbers

    def row(self, memory_id: str) -> int | None:
        """Return the row of a memory; None if there is none with this id."""
        return self._rows.get(memory_id)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column."""
        return self._columns[name]

    async def cosines(self, vector: Floats) -> Floats:
        """Return the cosine of each row with a vector."""
        return await scoring.relevance(self._columns.vectors, self._columns["scale"], vector)

    def pending(self, since: Mark) -> tuple[float, Mark]:
        """Return the importance of all observations after a place in the stream, and the place of the latest."""
        ids, created = self._columns["id"], self._columns["created"]
        after = (created > since.created) | ((created == since.created) & (ids > since.id.encode()))
        rows = np.flatnonzero(after & self._columns["alive"] & (self._columns["kind"] == OBSERVATION))
        if not len(rows):
            return 0.0, since
        last = int(rows[np.lexsort((ids[rows], created[rows]))[-1]])
        return float(self._columns["importance"][rows].sum()), Mark(float(created[last]), ids[last].decode())

    def trim(self, limit: int) -> list[str]:
        """Remove what is least worth keeping until so many memories are left, and return the ids of what went.

        Evidence is never forgotten before what rests on it. Of the memories on which no other rests, those go first
        whose recency and importance, normalised as for retrieval and with equal weights, are lowest.
        """
        removed: list[str] = []
        while (surplus := len(self) - limit) > 0:
            free = np.flatnonzero(self._columns["alive"] & ~self._columns["carries"])
            rows = free if len(free) else np.flatnonzero(self._columns["alive"])
            accessed, ids = self._columns["accessed"][rows], self._columns["id"][rows]
            worth = scoring.normalise(scoring.recency(accessed, float(accessed.max())))
            worth = worth + scoring.normalise(self._columns["importance"][rows])
            going = _decoded(ids[scoring.best(-worth, -self._columns["created"][rows], ids, surplus)])
            self.remove(going)
            removed += going
        return removed


class _Names:
    """Names, and the numbers that stand for them in a column; 0 is no name."""

    def __init__(self) -> None:
        self.numbers = {"": 0}
        self.names = [""]

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.names)
            self.names.append(name)
        return self.numbers[name]


def _decoded(ids: NDArray[np.bytes_]) -> list[str]:
    return [memory_id.decode() for memory_id in ids.tolist()]
