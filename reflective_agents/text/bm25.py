"""BM25 (Robertson and Zaragoza 2009): how well a text fits the words of a query; for arrays of texts, too."""

import math
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Numbers = TypeVar("Numbers", float, "NDArray[np.floating[Any]]")
"""A number, or an array with one for each text."""
# As SQLite's FTS5 has them, which ranks the articles and the user's documents.
K1, B = 1.2, 0.75


def idf(holding: int, total: int) -> float:
    """Calculate the inverse document frequency of a word that `holding` of `total` texts hold; always positive."""
    # A word that more than half of the texts hold would count against them.
    return max(math.log((total - holding + 0.5) / (holding + 0.5)), 1e-6)


def damping(length: Numbers, mean: float) -> Numbers:
    """Calculate what BM25 adds to the number of occurrences below the line, for a text of this length in words.

    Args:
        length: Words of the text.
        mean: Words of all texts on average.
    """
    return K1 * (1 - B + B * length / max(mean, 1.0))


def saturated(count: Numbers, damping: Numbers, weight: float) -> Numbers:
    """Weigh numbers of occurrences as BM25 does, for a word of this weight."""
    return count / (count + damping) * (weight * (K1 + 1))
