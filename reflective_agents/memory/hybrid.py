"""How well memories fit a query by meaning and by words, by what was said around them, by whom, and when.

The sum of the scaled cosine and the scaled BM25, each also of the turn with its neighbours, at half weight; then what
speaks for the conversation as a whole, for a speaker whose name the query has, and for a date it names.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reflective_agents.memory.postings import Postings, Rows, idf, saturated
from reflective_agents.memory.scoring import Floats, highest, normalise

NEAR = 0.5
"""Weight of a turn together with its neighbours, beside the turn itself."""
SESSION, SPEAKER, PERIOD = 0.5, 0.3, 0.5
"""Weights of the best that was said in the same session, of the speaker named, and of the time named."""
GAP = 3600.0
"""Seconds without a word after which a conversation begins anew."""
BEFORE, AFTER, ABOUT = 3 * 86400.0, 10 * 86400.0, 0.6
"""Seconds before and after a period in which it is talked about, too, and what that counts beside the period itself."""
TELLING, BEST = 100, 3
"""Turns that tell which sessions fit, and how many of each count."""


class Asked(NamedTuple):
    """What is looked for: its vector, how much that says beside the words, its words, and the periods it names."""

    vector: NDArray[np.float32]
    meaning: float = 1.0
    words: frozenset[str] = frozenset()
    stems: frozenset[int] = frozenset()
    periods: Sequence[tuple[float, float]] = ()


class Timeline:
    """The rows of an index in the order of time, turns of conversations first, and which turns follow on each other.

    Attributes:
        order: The rows that are in use.
        places: The place of each row in that order; -1 for those that are not.
        follows: For each place, and the one after the last, whether it follows on the one before in the same session.
        sessions: The number of the session of each place.
    """

    def __init__(
        self,
        ids: NDArray[np.bytes_],
        alive: NDArray[np.bool_],
        turns: NDArray[np.bool_],
        created: Floats,
        conversations: NDArray[np.int32],
    ) -> None:
        by_time = np.argsort(created, kind="stable")  # nearly sorted already, which costs little
        if (np.diff(created[by_time]) == 0).any():
            by_time = np.lexsort((ids, created))
        self.order = np.concatenate([by_time[(alive & turns)[by_time]], by_time[(alive & ~turns)[by_time]]])
        self.places = np.full(len(alive), -1)
        self.places[self.order] = np.arange(len(self.order))
        at, said, where = created[self.order], turns[self.order], conversations[self.order]
        follows = (np.diff(at) <= GAP) & (where[1:] == where[:-1]) & said[1:]
        self.follows = np.concatenate([[False], follows, [False]])
        self.sessions = np.cumsum(~self.follows[:-1]) - 1
        self.sizes = np.bincount(self.sessions)

    def around(self, values: Floats) -> Floats:
        """Add to each value the values before and after it in the same session."""
        near, joined = values.copy(), self.follows[1:-1]
        near[1:] += np.where(joined, values[:-1], 0.0)
        near[:-1] += np.where(joined, values[1:], 0.0)
        return near

    def reach(self, places: Rows) -> Rows:
        """Return the places of memories and of their neighbours, without repetitions."""
        marked = np.zeros(len(self.order), np.bool_)
        marked[places] = True
        marked[places[self.follows[places]] - 1] = True
        marked[places[self.follows[places + 1]] + 1] = True
        return np.flatnonzero(marked)

    def near(self, values: Floats, places: Rows) -> Floats:
        """Calculate `around` for some places only."""
        before = np.where(self.follows[places], values[places - 1], 0.0)
        after = np.where(self.follows[places + 1], values[(places + 1) % len(values)], 0.0)
        return np.asarray(values[places] + before + after)

    def by_session(self, scores: Floats) -> Floats:
        """Return for each place its session's mean best score, among the best scores of all."""
        top = highest(scores, TELLING)
        top = top[np.lexsort((-scores[top], self.sessions[top]))]
        _, first, group = np.unique(self.sessions[top], return_index=True, return_inverse=True)
        best = top[np.arange(len(top)) - first[group] < BEST]
        sums = np.bincount(self.sessions[best], scores[best], len(self.sizes))
        return np.asarray((sums / np.minimum(self.sizes, BEST))[self.sessions])


def bm25(line: Timeline, postings: Postings, lengths: Floats, stems: frozenset[int]) -> tuple[Floats, Floats]:
    """Calculate BM25 of each memory, and of each together with its neighbours, in order of time."""
    total = len(line.order)
    said, near, counts = np.zeros(total), np.zeros(total), np.zeros(total)
    long = lengths[line.order]
    long_near = line.around(long)
    mean, mean_near = max(float(long.mean()), 1.0), max(float(long_near.mean()), 1.0)
    postings_of = [postings.holding(stem) for stem in sorted(stems)]
    # What most memories hold counts next to nothing, and takes the longest: it is left to queries of nothing else.
    for rows, held in [one for one in postings_of if 2 * len(one[0]) < total] or postings_of:
        places = line.places[rows]
        places, held = places[places >= 0], held[places >= 0]
        counts[places] = held
        said[places] += idf(len(places), total) * saturated(held, long[places], mean)
        reach = line.reach(places)
        near[reach] += idf(len(reach), total) * saturated(line.near(counts, reach), long_near[reach], mean_near)
        counts[places] = 0.0
    return said, near


def fit(line: Timeline, cosines: Floats, said: Floats, near: Floats, meaning: float) -> Floats:
    """Score how well each memory fits by meaning and words, with its neighbours and its session, in order of time."""
    fitting = normalise(said) + NEAR * normalise(near)
    if meaning:
        fitting += meaning * (normalise(cosines) + NEAR * normalise(line.around(cosines)))
    return np.asarray(fitting + SESSION * normalise(line.by_session(fitting)))


def within(periods: Sequence[tuple[float, float]], created: Floats) -> Floats:
    """Score how well the time of each memory fits one of these periods, in 0..1."""
    fits = np.zeros(len(created))
    for start, end in periods:
        about = (start - BEFORE <= created) & (created < end + AFTER)
        fits = np.maximum(fits, np.where((start <= created) & (created < end), 1.0, ABOUT * about))
    return fits
