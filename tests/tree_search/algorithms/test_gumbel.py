"""Gumbel search with sequential halving: rounds with equal shares, after each of which the better half goes on."""

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.tree_search.algorithms.gumbel import Gumbel
from reflective_agents.tree_search.algorithms.mcts import Mcts
from reflective_agents.tree_search.base import Child, Job
from reflective_agents.tree_search.tree_paths import ROOT, depth_of
from tests.tree_search.algorithms.growing import Search, node

GOOD = {"0.0": 0.1, "0.1": 0.9, "0.2": 0.2, "0.3": 0.8}
"""What each child of the root, and everything below it, is worth."""


def worth(seed: int, job: Job, depth: int) -> list[Child]:
    if not job["node"]:
        return [Child(node(ROOT, None, kind="root"), True)]
    ids = [f"{job['node']}.{job['first'] + number}" for number in range(job["width"])]
    return [Child(node(key, GOOD[key[:3]]), depth_of(key) < depth) for key in ids]


def rollouts(algorithm: Gumbel, number: int, depth: int = 12) -> Counter[str]:
    """How many rollouts went through each child of the root, after the one that made them."""
    places = Search(algorithm, depth=depth, comes=worth).run(number + 1)
    return Counter(key[:3] for key in places[1:] if key)


def test_all_compete_in_the_first_round_and_the_better_half_in_the_next() -> None:
    """16 rollouts in two rounds of 8: two for each of the four, then four for each of the two best."""
    algorithm = Gumbel(width=4, considered=4, rollouts=16)
    assert rollouts(algorithm, 8) == {"0.0": 2, "0.1": 2, "0.2": 2, "0.3": 2}
    assert rollouts(algorithm, 16) == {"0.0": 2, "0.1": 6, "0.2": 2, "0.3": 6}


def test_rounds_are_shared_by_the_children_that_there_are() -> None:
    """Eight may compete, but there are four: the same rounds as with four."""
    few = {considered: Gumbel(width=4, considered=considered, rollouts=16) for considered in (4, 8)}
    assert rollouts(few[8], 16) == rollouts(few[4], 16) == {"0.0": 2, "0.1": 6, "0.2": 2, "0.3": 6}


def test_what_is_left_over_goes_to_the_best() -> None:
    assert rollouts(Gumbel(width=4, considered=4, rollouts=16), 24)["0.1"] > 10


def test_no_more_than_the_considered_ones_get_a_rollout() -> None:
    tried = rollouts(Gumbel(width=4, considered=2, rollouts=8), 8)
    assert set(tried) == {"0.1", "0.3"}


def sampled(seed: int, job: Job, depth: int) -> list[Child]:
    """Children that are all worth the same; of each four, the third came of 1,000 samples at the root, of 3 below."""
    if not job["node"]:
        return [Child(node(ROOT, None, kind="root"), True)]
    often = 1000 if job["node"] == ROOT else 3
    counts = [often if number == 2 else 1 for number in range(job["width"])]
    return [Child(node(f"{job['node']}.{number}", samples=count), True) for number, count in enumerate(counts)]


def test_the_child_of_the_root_that_most_samples_came_to_is_considered_first() -> None:
    for seed in map(str, range(20)):
        first = Search(Gumbel(width=4, considered=1, rollouts=4, seed=seed), comes=sampled).run(2)[1]
        assert first == "0.2"


def test_below_the_root_visits_follow_the_policy() -> None:
    """The policy of four children is 1, 1, 3 and 1 parts of 6, and each has its share of the rollouts."""
    places = Search(Gumbel(width=4, considered=1, rollouts=32), comes=sampled).run(26)
    assert Counter(key[:5] for key in places if key and key.startswith("0.2.")) == {
        "0.2.0": 4,
        "0.2.1": 4,
        "0.2.2": 12,
        "0.2.3": 4,
    }


def test_below_the_root_a_better_value_outweighs_samples() -> None:
    def comes(seed: int, job: Job, depth: int) -> list[Child]:
        first, *others = sampled(seed, job, depth)
        return [Child({**first.node, "score": 0.9}, True), *others]

    places = Search(Gumbel(width=4, considered=1, rollouts=32), comes=comes).run(12)
    assert all(key.startswith("0.0.0") for key in places[2:] if key)


def test_draws_are_of_the_seed_and_follow_the_gumbel_distribution() -> None:
    draws = [Gumbel(seed=str(number))._draw("0.0") for number in range(4000)]
    assert draws[:3] == [Gumbel(seed=str(number))._draw("0.0") for number in range(3)]
    assert sum(draws) / len(draws) == pytest.approx(0.5772, abs=0.08)
    variance = sum((draw - 0.5772) ** 2 for draw in draws) / len(draws)
    assert variance == pytest.approx(math.pi**2 / 6, rel=0.15)


@pytest.mark.thorough
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_every_node_is_expanded_at_most_once_and_nothing_is_left_at_the_end(seed: int) -> None:
    """Whatever fails, ends or is pruned: a small tree is searched to its end, as MCTS does."""
    gumbel, mcts = (Search(algorithm, seed, depth=3) for algorithm in (Gumbel(width=3, rollouts=8), Mcts(width=3)))
    places = gumbel.run(200)
    assert len(places) == len(set(places))
    assert sorted(map(str, places)) == sorted(map(str, mcts.run(200)))
    assert gumbel.stats[ROOT]["closed"]


@pytest.mark.thorough
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_results_may_come_in_any_order_and_jobs_may_be_withdrawn(seed: int) -> None:
    search = Search(Gumbel(width=3, rollouts=8), seed, depth=4)
    search.interleave(60)
    assert all(not stat.get("flight") and not stat.get("virtual") for stat in search.stats.values())
