"""Which memories hold which words, and how often: what BM25 reads, in 5 bytes a word."""

from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from reflective_agents.memory.scoring import Floats

Rows = NDArray[np.intp]
PACKED = np.dtype([("word", "<u4"), ("count", "u1")])
"""A word of a memory, as its hash, and how often it occurs, at most 255 times."""
LOOSE = 20_000
"""Words that are not sorted in yet, beyond which they are, and beyond an eighth of those that are."""


def hashed(word: str) -> int:
    """Hash a word to a number; two words of a memory collide too rarely to matter."""
    return crc32(word.encode())


def pack(counts: Mapping[str, int]) -> bytes:
    """Pack the words of a memory into bytes."""
    merged = Counter[int]()
    for word, count in counts.items():
        merged[hashed(word)] += count
    pairs = [(word, min(count, 255)) for word, count in sorted(merged.items())]
    return np.array(pairs, PACKED).tobytes()


Flat = tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.uint8]]
"""Words, the rows that hold them, and how often each does."""
NOTHING: Flat = (np.zeros(0, np.uint32), np.zeros(0, np.int32), np.zeros(0, np.uint8))


class Postings:
    """The words of memories by their rows in an index: sorted by word, with a tail of what came last."""

    def __init__(self) -> None:
        self._words = np.zeros(0, np.uint32)
        self._starts = np.zeros(1, np.intp)
        self._rows = np.zeros(0, np.int32)
        self._counts = np.zeros(0, np.uint8)
        self._tail = NOTHING
        self._new: list[Flat] = []
        self._merging = Lock()  # several queries may be the first to ask, in threads of their own

    def add(self, start: int, packed: Sequence[bytes]) -> Floats:
        """Add the words of memories, whose rows follow on each other, and return the lengths of the texts in words."""
        words = np.frombuffer(b"".join(packed), PACKED)
        lengths = [len(text) // PACKED.itemsize for text in packed]
        offsets = np.repeat(np.arange(len(packed)), lengths)
        self._new.append((words["word"].copy(), (start + offsets).astype(np.int32), words["count"].copy()))
        return np.asarray(np.bincount(offsets, words["count"], len(packed)), np.float64)

    def holding(self, word: int) -> tuple[Rows, Floats]:
        """Return the rows of the memories that hold a word, and how often each does."""
        with self._merging:
            self._merge_new()
        words, rows, counts = self._tail
        late = np.flatnonzero(words == np.uint32(word))
        index = int(np.searchsorted(self._words, np.uint32(word)))
        present = index < len(self._words) and self._words[index] == word
        part = slice(self._starts[index], self._starts[index + 1]) if present else slice(0)
        holders = np.concatenate([self._rows[part], rows[late]]).astype(np.intp)
        return holders, np.concatenate([self._counts[part], counts[late]]).astype(np.float32)

    def move(self, new_rows: NDArray[np.integer]) -> None:
        """Follow rows to where they have moved; those that moved to -1 are gone."""
        words, rows, counts = self._all()
        rows = new_rows[rows].astype(np.int32)
        remaining = rows >= 0
        self._sort((words[remaining], rows[remaining], counts[remaining]))

    def _merge_new(self) -> None:
        if self._new:
            self._tail = _joined(self._tail, *self._new)
            self._new = []
            if len(self._tail[0]) > max(LOOSE, len(self._rows) // 8):
                self._sort(self._all())

    def _all(self) -> Flat:
        words = np.repeat(self._words, np.diff(self._starts))
        return _joined((words, self._rows, self._counts), self._tail, *self._new)

    def _sort(self, flat: Flat) -> None:
        words, rows, counts = flat
        order = np.argsort(words, kind="stable")
        self._rows, self._counts = rows[order], counts[order]
        self._words, starts = np.unique(words[order], return_index=True)
        self._starts = np.append(starts, len(words))
        self._tail, self._new = NOTHING, []


def _joined(*flats: Flat) -> Flat:
    words, rows, counts = zip(*flats, strict=True)
    return np.concatenate(words), np.concatenate(rows), np.concatenate(counts)
