"""The memories of an agent in the order of time: which follow on each other, and in which sessions they were said."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflective_agents.memory.postings import Rows
from reflective_agents.memory.scoring import Floats, highest, normalise
from reflective_agents.text.bm25 import damping

GAP = 3600.0
"""Seconds without a word after which a conversation begins anew."""
QUESTION = 0.5
"""What a turn that ends with a question has less of substance: the answer stands in the next."""
TOP_TURNS, TURNS_A_SESSION = 100, 3
"""Turns that tell which sessions fit, and how many of each count."""


class Timeline:
    """The memories of an index in the order of time, turns of conversations first, and which follow on each other.

    It holds until a memory comes or goes.

    Attributes:
        order: The rows that are in use.
        places: The place of each row in that order; -1 for those that are not.
        created: When the memory at each place was made.
        importance: How important it is.
        substance: How much there is in it, from -0.5 to 1: of turns the logarithm of the length, scaled, and less for a
            question; what was drawn from turns says much in few words.
        damping: What the length of each text takes from its words in BM25, and the same with its neighbours.
        follows: For each place, and the one after the last, whether it follows on the one before in the same session.
        sessions: The number of the session of each place.
        sizes: How many places each session has.
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
        follows[1 : len(turn_rows)] = (np.diff(self.created[: len(turn_rows)]) <= GAP) & (where[1:] == where[:-1])
        self.follows, self._joined = follows, follows[1:-1].astype(np.float32)
        self.sizes = np.diff(np.flatnonzero(~follows))
        self.sessions = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self._counted = np.minimum(self.sizes, TURNS_A_SESSION)
        lengths = columns["length"][self.order]
        self.substance = np.ones(len(self.order), np.float32)
        first = slice(len(turn_rows))
        self.substance[first] = normalise(np.log1p(lengths[first])) - QUESTION * columns["asks"][turn_rows]
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
    gaps = np.diff(created[rows])
    if (gaps < 0).any():
        rows = rows[np.argsort(created[rows], kind="stable")]  # nearly sorted already, which costs little
        gaps = np.diff(created[rows])
    same = gaps == 0
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        rows[tied] = rows[tied][np.lexsort((ids[rows[tied]], created[rows[tied]]))]
    return rows


def _damping(lengths: Floats) -> Floats:
    return damping(lengths, float(lengths.mean()) if len(lengths) else 0.0)
