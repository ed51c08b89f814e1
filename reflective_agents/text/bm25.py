"""BM25 (Robertson and Zaragoza 2009): how well texts fit the words of a query, by arrays over the texts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
K1, B = 1.2, 0.75


def idf(holding: int, total: int) -> float:
    """Calculate the inverse document frequency of a word that `holding` of `total` texts hold; always positive."""
    return max(float(np.log((total - holding + 0.5) / (holding + 0.5))), 1e-6)


def damping(lengths: Floats) -> Floats:
    """Calculate what BM25 adds to the number of occurrences below the line, for texts of these lengths in words."""
    mean = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
    return np.asarray(K1 * (1 - B + B * lengths / mean))


def saturated(counts: Floats, damping: Floats, weight: float) -> Floats:
    """Weigh numbers of occurrences as BM25 does, for a word of this weight."""
    shares = counts + damping
    np.divide(counts, shares, out=shares)
    shares *= weight * (K1 + 1)
    return shares
