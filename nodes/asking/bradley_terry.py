"""Bradley-Terry scores from comparisons by pairs, and which pairs to compare next.

The model says that i is better than j with the chance s_i / (s_i + s_j). The strengths s are found by Hunter's MM
iteration (Annals of Statistics 32, 2004, section 2). Who is as good as an average answer has a strength of 1: with that
each has drawn once beforehand, so that the strength of who has won everything, or nothing, is finite.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

ITERATIONS, PRECISION, DIGITS = 500, 1e-9, 6
"""The iteration ends when no strength changes by more. Scores are rounded, so that equal results make equal scores."""


class Result(NamedTuple):
    """What came of a comparison: the share of it that the first of the two has won, 1, 0.5 (a draw) or 0."""

    first: int
    second: int
    share: float


def strengths(count: int, results: Sequence[Result]) -> list[float]:
    """Return the strength of each of `count` candidates, all above 0; 1 is that of an average one."""
    strength = [1.0] * count
    for _ in range(ITERATIONS):
        # The draw with an average candidate comes first.
        won = [0.5] * count
        faced = [1 / (own + 1) for own in strength]
        for first, second, share in results:
            won[first] += share
            won[second] += 1 - share
            for each in (first, second):
                faced[each] += 1 / (strength[first] + strength[second])
        before = strength
        strength = [won[i] / faced[i] for i in range(count)]
        if all(abs(strength[i] - before[i]) < PRECISION for i in range(count)):
            break
    return strength


def scores(count: int, results: Sequence[Result]) -> list[float]:
    """Return the chance of each candidate to be better than an average one, between 0 and 1."""
    return [round(own / (own + 1), DIGITS) for own in strengths(count, results)]


def next_pairs(count: int, results: Sequence[Result]) -> list[tuple[int, int]]:
    """Choose pairs that can be compared at once, the most informative first; each candidate is in one at most.

    First comes who was never compared, then the pair whose comparison is most open, and would tell most of who is
    ahead (the two phases of V1, arXiv 2603.04304, section 3). No pair is compared twice.
    """
    strength = strengths(count, results)
    met = Counter[int]()
    done = set[tuple[int, int]]()
    for first, second, _ in results:
        met.update((first, second))
        done.add((first, second))

    def informative(pair: tuple[int, int]) -> tuple[bool, float]:
        first, second = (strength[each] for each in pair)
        is_open = first * second / (first + second) ** 2
        ahead = first / (first + 1) + second / (second + 1)
        is_new = any(met[each] == 0 for each in pair)
        return is_new, is_open * ahead

    pairs: list[tuple[int, int]] = []
    taken = set[int]()
    left = [pair for pair in combinations(range(count), 2) if pair not in done]
    for pair in sorted(left, key=informative, reverse=True):
        if taken.isdisjoint(pair):
            pairs.append(pair)
            taken.update(pair)
    return pairs
