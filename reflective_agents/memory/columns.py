"""The rows of an index: a column of numbers for each thing that is known of memories, and a vector for each row."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflective_agents.memory.scoring import Eighths

COLUMNS: dict[str, str | type[np.generic]] = {
    "id": "S32",
    "kind": np.int8,
    "created": np.float64,
    "accessed": np.float64,
    "importance": np.float64,
    "alive": np.bool_,  # False where a memory was removed, until the rows are packed
    "archived": np.bool_,
    "carries": np.bool_,  # whether other memories rest on it
    "until": np.float64,  # since when it no longer holds
    "speaker": np.int32,
    "conversation": np.int32,
    "topic": np.int8,
    "asks": np.bool_,
    "length": np.float32,  # in words
    "scale": np.float32,  # of the numbers of its vector
}


class Columns:
    """Rows of columns by their names, as views that can be written to; they hold until rows are added or ordered."""

    def __init__(self) -> None:
        self._columns = {name: np.zeros(0, kind) for name, kind in COLUMNS.items()}
        self._vectors = np.zeros((0, 0), np.int8)
        self._end = 0

    def __len__(self) -> int:
        return self._end

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name][: self._end]

    @property
    def vectors(self) -> Eighths:
        """The vector of each row."""
        return self._vectors[: self._end]

    @property
    def dimensions(self) -> int:
        """The length of the vectors; 0 as long as there was none."""
        dimensions: int = self._vectors.shape[1]
        return dimensions

    def add(self, vectors: Eighths, values: Mapping[str, Any]) -> None:
        """Add a row for each vector; a column that is not named gets zeros."""
        start, end = self._end, self._end + len(vectors)
        self._reserve(end, vectors.shape[1])
        self._vectors[start:end] = vectors
        for name, column in self._columns.items():
            column[start:end] = values.get(name, False)
        self._end = end

    def order(self, rows: NDArray[np.intp]) -> None:
        """Keep these rows alone, in this order."""
        self._vectors = self._vectors[rows]
        for name, column in self._columns.items():
            self._columns[name] = column[rows]
        self._end = len(rows)

    def _reserve(self, rows: int, dimensions: int) -> None:
        """Make room: a quarter more than there was, so that adding takes constant time on average."""
        used = len(self._vectors)
        if rows <= used:
            return
        size = max(rows, used * 5 // 4)
        vectors = np.zeros((size, dimensions), np.int8)
        if used:
            vectors[:used] = self._vectors
        self._vectors = vectors
        for name, column in self._columns.items():
            self._columns[name] = np.zeros(size, column.dtype)
            self._columns[name][:used] = column
