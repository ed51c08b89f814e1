"""How memories are ranked (Generative Agents, section 4.1): recency, importance and relevance, over arrays.

Each term is normalised to 0..1 over the candidates, and the score is their weighted mean: the order is that of the
paper's weighted sum, and the score stays within 0..1.
"""

import asyncio
import math
from collections.abc import Sequence

import numkong
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Halves = NDArray[np.float16]
"""Vectors as they are stored: their cosines are off by less than 0.0005."""
Eighths = NDArray[np.int8]
"""Vectors as they are compared, in units of a scale of their own: their cosines are off by 0.001 or so."""
MOST = 127
"""The highest of their numbers."""
DECAY = 0.995
"""What is left of recency after an hour without access."""
FLAT = 0.5
"""What a term is worth whose values are all the same: it says nothing, and shifts all candidates alike."""
BLOCK = 64
"""Values of which the highest stands for all when the highest of many are looked for."""
PART = 50_000
"""Vectors that one thread multiplies before it takes the next: few enough that no core waits long for another."""


def recency(accessed: Floats, now: float) -> Floats:
    """Calculate 0.995 to the power of the hours since the last access, before normalisation; 1 for the future.

    Args:
        accessed: Last access of each memory, in seconds of the agent's clock.
        now: The time on that clock.
    """
    hours = np.maximum(now - accessed, 0.0) / 3600.0
    return np.asarray(np.exp(math.log(DECAY) * hours))  # DECAY ** hours, in a fifth of the time


def lateness(created: Floats, now: float) -> Floats:
    """Calculate a recency that fades slowly: minus the logarithm of the age in days, before normalisation.

    Each doubling of the age counts the same, so last week differs from last month as last month does from spring.

    Args:
        created: When each memory was made, in seconds of the agent's clock.
        now: The time on that clock.
    """
    age = np.maximum(now - created, 0.0)
    age /= 86400.0
    days = age.astype(np.float32)  # whose logarithm takes a third of the time
    days += 1
    return np.asarray(-np.log(days))


def rounded(vectors: Floats) -> tuple[Eighths, Floats]:
    """Round vectors to whole numbers, and return them with the scale of each, which makes its highest number `MOST`."""
    vectors = np.asarray(vectors, np.float32)
    scales = np.abs(vectors).max(axis=1, initial=0.0) / MOST
    # A vector of zeros stays what it is.
    return np.rint(vectors / np.where(scales > 0, scales, 1.0)[:, np.newaxis]).astype(np.int8), scales


async def relevance(vectors: Eighths, scales: Floats, query: Floats) -> Floats:
    """Calculate the cosine of each memory and the query, before normalisation; the vectors have length 1 or 0.

    Equal vectors get equal values wherever they stand, which a matrix product does not promise. Parts of the array are
    worked on at once, in threads: the cost is that of reading the memory, of which whole numbers take the least.
    """
    if not vectors.size:
        return np.zeros(len(vectors), np.float32)
    (whole, [scale]), cosines = rounded(query[np.newaxis]), np.empty(len(vectors), np.float32)
    packed = numkong.dots_pack(whole)

    def multiply(part: slice) -> None:
        cosines[part] = np.asarray(numkong.dots_packed(vectors[part], packed))[:, 0]

    parts = (slice(start, start + PART) for start in range(0, len(vectors), PART))
    await asyncio.gather(*(asyncio.to_thread(multiply, part) for part in parts))
    cosines *= scales * scale
    return cosines


def normalise(values: Floats) -> Floats:
    """Map the values linearly to 0..1, the lowest to 0 and the highest to 1; all to FLAT where they are the same."""
    if values.size == 0:
        return values
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.full_like(values, FLAT)


def score(terms: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Calculate the weighted mean of the normalised terms, in 0..1: recency, importance, relevance."""
    total = np.zeros(len(terms[0]), np.result_type(*terms))
    for weight, term in zip(weights, terms, strict=True):
        total += weight * term
    total /= sum(weights)
    return total


def highest(values: Floats, k: int) -> NDArray[np.intp]:
    """Return the places of the k highest values, and of those equal to the lowest of them, in no particular order."""
    if k <= 0 or not len(values):
        return np.empty(0, np.intp)
    # Values that stand far apart have a peak in common: that is calculated many times as fast as of neighbours.
    peaks = values[: len(values) // BLOCK * BLOCK].reshape(BLOCK, -1).max(axis=0)
    # At least k values are as high as the k-th highest peak, and few are.
    lowest = np.partition(peaks, -k)[-k] if k < len(peaks) else values.min()
    indices = np.flatnonzero(values >= lowest)
    few = values[indices]
    return indices[few >= np.partition(few, -k)[-k]] if k < len(few) else indices


def best(scores: Floats, created: Floats, ids: NDArray[np.bytes_], k: int) -> NDArray[np.intp]:
    """Return the places of the k highest scores, highest first.

    Among equals the later created goes first, then the id that sorts first. The order in which memories were added
    does not matter.
    """
    indices = highest(scores, k)
    order = np.lexsort((ids[indices], -created[indices], -scores[indices]))
    return indices[order[:k]]
