"""Bradley-Terry scores, and which pairs are compared next."""

import random
from itertools import combinations

import pytest

from reflective_agents.nodes.asking.bradley_terry import Result, next_pairs, scores, strengths


def test_two_candidates_have_the_strengths_that_their_wins_say() -> None:
    first, second = strengths(2, [Result(0, 1, 1.0)] * 3 + [Result(0, 1, 0.0)])
    assert first * second == pytest.approx(1, abs=1e-4)  # as far above the average as the other is below it
    # at the maximum of the likelihood the wins of each are those that its strength lets expect
    expected = 4 * first / (first + second) + 1 / (first + 1) * first
    assert expected == pytest.approx(3 + 0.5, abs=1e-3)


def test_whoever_wins_everything_has_a_finite_score_and_the_best() -> None:
    results = [Result(*pair, 1.0) for pair in combinations(range(4), 2)]
    ranked = scores(4, results)
    assert ranked == sorted(ranked, reverse=True)
    assert 0 < ranked[-1] < 0.5 < ranked[0] < 1


def test_in_a_complete_round_the_scores_are_in_the_order_of_the_wins_and_equal_where_those_are() -> None:
    for seed in range(30):
        draw = random.Random(seed)
        results = [Result(*pair, draw.choice([0.0, 0.5, 1.0])) for pair in combinations(range(5), 2)]
        wins = [0.0] * 5
        for first, second, share in results:
            wins[first] += share
            wins[second] += 1 - share
        ranked = scores(5, results)
        order = [
            (wins[first] > wins[second]) - (wins[first] < wins[second]) for first, second in combinations(range(5), 2)
        ]
        ordered = [(ranked[a] > ranked[b]) - (ranked[a] < ranked[b]) for a, b in combinations(range(5), 2)]
        assert order == ordered


def test_a_draw_and_no_comparison_tell_nothing() -> None:
    assert scores(3, []) == [0.5] * 3
    assert scores(2, [Result(0, 1, 0.5)]) == pytest.approx([0.5] * 2)


def test_each_is_compared_once_before_any_twice_and_no_pair_again() -> None:
    results: list[Result] = []
    first = next_pairs(5, results)
    assert len(first) == 2
    assert len({each for pair in first for each in pair}) == 4
    results += [Result(*pair, 1.0) for pair in first]
    [left] = set(range(5)) - {each for pair in first for each in pair}
    assert any(left in pair for pair in next_pairs(5, results))
    while pairs := next_pairs(5, results):
        results += [Result(*pair, 1.0) for pair in pairs]
    assert sorted(result[:2] for result in results) == sorted(combinations(range(5), 2))


def test_then_those_are_compared_who_are_ahead_and_close() -> None:
    results = [Result(0, 1, 1.0), Result(2, 3, 1.0)]
    assert next_pairs(4, results)[0] == (0, 2)
