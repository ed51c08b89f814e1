"""How well memories fit a query by meaning and by words, by what was said around them, by whom, and when.

The sum of the scaled cosine and the scaled BM25, each also of the turn with its neighbours, at half weight; then what
speaks for the conversation as a whole, for a speaker whose name the query has, and for a date it names.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reflective_agents.memory.postings import Postings, Rows
from reflective_agents.memory.scoring import Floats, highest, normalise
from reflective_agents.text.bm25 import damping, idf, saturated

NEAR = 0.5
"""Weight of a turn together with its neighbours, beside the turn itself."""
SESSION, SPEAKER, PERIOD = 0.5, 0.3, 0.5
"""Weights of the best that was said in the same session, of the speaker named, and of the time named."""
GAP = 3600.0
"""Seconds without a word after which a conversation begins anew."""
BEFORE, AFTER, AROUND = 3 * 86400.0, 10 * 86400.0, 0.6
"""Seconds before and after a period in which it is talked about, too, and what that counts beside the period itself."""
TOP_TURNS, TURNS_A_SESSION = 100, 3
"""Turns that tell which sessions fit, and how many of each count."""
COMMON_WORD = 16
"""A word that more than one memory of so many holds is counted in all memories at once, which is then faster."""


class MemoryQuery(NamedTuple):
    """What is looked for: its vector, how much that says beside the words, its words, and the periods it names."""

    vector: NDArray[np.float32]
    meaning: float = 1.0
    words: frozenset[str] = frozenset()
    stems: frozenset[int] = frozenset()
    periods: Sequence[tuple[float, float]] = ()


class Timeline:
    """The memories of an index in the order of time, turns of conversations first, and which follow on each other.

    It holds until a memory comes or goes.

    Attributes:
        order: The rows that are in use.
        places: The place of each row in that order; -1 for those that are not.
        created: When the memory at each place was made.
        importance: How important it is.
        damping: What the length of each text takes from its words in BM25, and the same with its neighbours.
        follows: For each place, and the one after the last, whether it follows on the one before in the same session.
        sessions: The number of the session of each place.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], turns: NDArray[np.bool_]) -> None:
        alive, created = columns["alive"], columns["created"]
        turn_rows = _by_time(np.flatnonzero(alive & turns), columns["id"], created)
        self.order: Rows = np.concatenate([turn_rows, np.flatnonzero(alive & ~turns)])
        self.positions = np.full(len(alive), -1)
        self.positions[self.order] = np.arange(len(self.order))
        self.created, self.importance = created[self.order], columns["importance"][self.order].astype(np.float32)
        where = columns["conversation"][turn_rows]
        follows = np.zeros(len(self.order) + 1, np.bool_)
        follows[1 : len(turn_rows)] = (np.diff(created[turn_rows]) <= GAP) & (where[1:] == where[:-1])
        self.follows, self._joined = follows, follows[1:-1].astype(np.float32)
        self.sessions = np.cumsum(~follows[:-1]) - 1
        self._counted = np.minimum(np.bincount(self.sessions), TURNS_A_SESSION)
        lengths = columns["length"][self.order]
        self.damping = _damping(lengths), _damping(self.around(lengths))

    def around(self, values: Floats) -> Floats:
        """Add to each value the values before and after it in the same session."""
        near = values.copy()
        near[1:] += values[:-1] * self._joined
        near[:-1] += values[1:] * self._joined
        return near

    def reach(self, positions: Rows) -> Rows:
        """Return the places of memories and of their neighbours, without repetitions."""
        marked = np.zeros(len(self.order), np.bool_)
        marked[positions] = True
        marked[positions[self.follows[positions]] - 1] = True
        marked[positions[self.follows[positions + 1]] + 1] = True
        return np.flatnonzero(marked)

    def near(self, values: Floats, positions: Rows) -> Floats:
        """Calculate `around` for some places only."""
        before = np.where(self.follows[positions], values[positions - 1], 0.0)
        after = np.where(self.follows[positions + 1], values[(positions + 1) % len(values)], 0.0)
        return np.asarray(values[positions] + before + after)

    def by_session(self, scores: Floats) -> Floats:
        """Return for each session its mean best score, among the best scores of all."""
        top = highest(scores, TOP_TURNS)
        top = top[np.lexsort((-scores[top], self.sessions[top]))]
        _, first, group = np.unique(self.sessions[top], return_index=True, return_inverse=True)
        best = top[np.arange(len(top)) - first[group] < TURNS_A_SESSION]
        sums = np.bincount(self.sessions[best], scores[best], len(self._counted))
        return np.asarray(sums / self._counted, np.float32)


def _by_time(rows: Rows, ids: NDArray[np.bytes_], created: Floats) -> Rows:
    """Sort rows by time, and by id where that is the same."""
    rows = rows[np.argsort(created[rows], kind="stable")]  # nearly sorted already, which costs little
    same = np.diff(created[rows]) == 0
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        rows[tied] = rows[tied][np.lexsort((ids[rows[tied]], created[rows[tied]]))]
    return rows


def bm25(line: Timeline, postings: Postings, stems: frozenset[int]) -> tuple[Floats, Floats]:
    """Calculate BM25 of each memory, and of each together with its neighbours, in order of time."""
    total = len(line.order)
    alone, near, counts = (np.zeros(total, np.float32) for _ in range(3))
    postings_of = [postings.holding(stem) for stem in sorted(stems)]
    # What most memories hold counts next to nothing, and takes the longest: it is left to queries of nothing else.
    for rows, occurrences in [posting for posting in postings_of if 2 * len(posting[0]) < total] or postings_of:
        positions = line.positions[rows]
        if len(line.positions) > total:
            positions, occurrences = positions[positions >= 0], occurrences[positions >= 0]
        counts[positions] = occurrences
        if COMMON_WORD * len(positions) > total:
            around = line.around(counts)
            alone += saturated(counts, line.damping[0], idf(len(positions), total))
            near += saturated(around, line.damping[1], idf(int(np.count_nonzero(around)), total))
        else:
            reach = line.reach(positions)
            alone[positions] += saturated(occurrences, line.damping[0][positions], idf(len(positions), total))
            near[reach] += saturated(line.near(counts, reach), line.damping[1][reach], idf(len(reach), total))
        counts[positions] = 0.0
    return alone, near


def fit(line: Timeline, cosines: Floats, alone: Floats, near: Floats, meaning: float) -> Floats:
    """Score how well each memory fits by meaning and words, with its neighbours and its session, in order of time."""
    fitting = normalise(alone) + NEAR * normalise(near)
    if meaning:
        fitting += meaning * (normalise(cosines) + NEAR * normalise(line.around(cosines)))
    fitting += (SESSION * normalise(line.by_session(fitting)))[line.sessions]
    return np.asarray(fitting)


def within(periods: Sequence[tuple[float, float]], created: Floats) -> Floats:
    """Score how well the time of each memory fits one of these periods, in 0..1."""
    fits = np.zeros(len(created), np.float32)
    for start, end in periods:
        about = (start - BEFORE <= created) & (created < end + AFTER)
        fits = np.maximum(
            fits, np.where((start <= created) & (created < end), np.float32(1), np.float32(AROUND) * about)
        )
    return fits


def _damping(lengths: Floats) -> Floats:
    return damping(lengths, float(lengths.mean()) if len(lengths) else 0.0)
