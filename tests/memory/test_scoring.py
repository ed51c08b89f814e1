"""The formulas: cases worked out by hand, and what has to hold of any numbers."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from reflective_agents.memory.rankings.base import Ranking
from reflective_agents.memory.rankings.paper import RANKING as PUBLISHED
from reflective_agents.memory.rankings.paper import Paper
from reflective_agents.memory.scoring import FLAT, best, highest, normalise, recency, relevance, rounded, score
from reflective_agents.state.errors import Misuse

HOUR = 3600.0
finite = st.floats(-1e6, 1e6, allow_subnormal=False)
columns = arrays.arrays(np.float64, st.integers(1, 30), elements=finite)


def test_recency_falls_by_half_a_percent_an_hour_since_the_last_access() -> None:
    now = 100 * HOUR
    accessed = np.array([now, now - HOUR, now - 24 * HOUR, now + HOUR])
    assert recency(accessed, now).tolist() == pytest.approx([1, 0.995, 0.995**24, 1])


@pytest.mark.parametrize(
    ("values", "expected"), [([2.0, 4.0, 3.0], [0, 1, 0.5]), ([7.0, 7.0], [FLAT, FLAT]), ([7.0], [FLAT]), ([], [])]
)
def test_the_lowest_becomes_0_and_the_highest_1(values: list[float], expected: list[float]) -> None:
    assert normalise(np.array(values)).tolist() == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (Paper(), [(0 + 1 + 0.5) / 3, (1 + 0 + 0.25) / 3]),
        (PUBLISHED, [(0.5 * 0 + 2 * 1 + 3 * 0.5) / 5.5, (0.5 * 1 + 2 * 0 + 3 * 0.25) / 5.5]),
        (Paper(0, 0, 2), [0.5, 0.25]),
    ],
)
def test_the_score_is_the_weighted_mean_of_the_terms(weights: Ranking, expected: list[float]) -> None:
    terms = np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.array([0.5, 0.25])
    assert score(terms, weights.weights).tolist() == pytest.approx(expected)


def test_the_published_code_weighs_relevance_most_and_recency_least() -> None:
    assert PUBLISHED.weights == (0.5, 2.0, 3.0)
    assert Paper().weights == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("weights", [(0, 0, 0), (-1, 1, 1), (math.nan, 1, 1), (1, math.inf, 1)])
def test_impossible_weights_are_refused(weights: tuple[float, float, float]) -> None:
    with pytest.raises(Misuse, match="weights are numbers of 0 or more"):
        Paper(*weights).check()


async def test_relevance_is_the_cosine_and_the_same_wherever_a_vector_stands() -> None:
    chance = np.random.default_rng(1)
    vectors = chance.standard_normal((60_001, 5), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[[3, 25_000, 59_999]] = vectors[60_000]
    cosines = await relevance(*rounded(vectors), vectors[7])
    assert cosines[:20] == pytest.approx([float(vector @ vectors[7]) for vector in vectors[:20]], abs=1e-2)
    assert len(set(cosines[[3, 25_000, 59_999, 60_000]])) == 1
    assert cosines[7] == pytest.approx(1, abs=1e-2)
    assert cosines.dtype == np.float32, "half of what has to be read"
    assert (await relevance(*rounded(np.zeros((0, 5))), vectors[7])).tolist() == []
    assert (await relevance(*rounded(np.zeros((3, 0))), vectors[7][:0])).tolist() == [0, 0, 0]


@given(columns)
def test_terms_lie_in_0_to_1_and_keep_their_order(values: Any) -> None:
    made = normalise(values)
    assert ((made >= 0) & (made <= 1)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(made[order]) >= 0).all()


@given(st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=30), st.tuples(*[st.floats(0, 10)] * 3))
def test_scores_lie_in_0_to_1(rows: list[tuple[float, float, float]], weights: tuple[float, float, float]) -> None:
    if not any(weights):
        return
    first, second, third = (normalise(np.array(column)) for column in zip(*rows, strict=True))
    scores = score((first, second, third), weights)
    assert ((scores >= 0) & (scores <= 1 + 1e-12)).all()


few = st.integers(0, 2).map(float)  # so that there are ties


@given(st.lists(st.tuples(few, few), min_size=1, max_size=12), st.integers(0, 14), st.randoms())
def test_ties_are_stable_whatever_the_order_of_insertion(rows: list[Any], k: int, chance: Any) -> None:
    named = [(value, created, f"{number:032x}") for number, (value, created) in enumerate(rows)]
    expected = [key for *_, key in sorted(named, key=lambda row: (-row[0], -row[1], row[2]))][:k]
    chance.shuffle(named)
    values, created, ids = (np.array(column) for column in zip(*named, strict=True))
    found = best(values, created, ids.astype("S32"), k)
    assert [named[index][2] for index in found] == expected


@given(st.integers(1, 2_000), st.integers(0, 2_000), st.integers(2, 1_000), st.integers(0, 10**6))
def test_the_highest_of_many_are_those_that_sorting_finds(count: int, k: int, different: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, different, count).astype(np.float32)
    lowest = sorted(values)[-min(k, count)] if k else math.inf
    assert sorted(highest(values, k)) == [number for number, value in enumerate(values) if value >= lowest]
