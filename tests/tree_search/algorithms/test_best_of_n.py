"""Best of N: as many trajectories as there should be, each as if it were alone, whatever they share."""

import copy
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.state.tree import Stats, merge_stats
from reflective_agents.tree_search.algorithms.best_of_n import BestOfN
from reflective_agents.tree_search.base import START, Child, Job, ask, get_extra, tell, withdraw
from reflective_agents.tree_search.tree_paths import ROOT, depth_of, round_score, upwards
from tests.tree_search.algorithms.growing import Search, node
from tests.tree_search.laws import any_order_gives_the_same

SEEDS = st.integers(0, 10**6)
SIZES = st.integers(1, 12)
sometimes = settings(deadline=None)


def few_steps(seed: int, job: Job, depth: int) -> list[Child]:
    """As many samples as are asked for of three possible steps, those that are the same merged; the last is judged."""
    if not job["node"]:
        return [Child(node(ROOT, None, kind="root"), True)]
    chance = random.Random(f"{seed} {job['node']}")
    drawn = [chance.randrange(3) for _ in range(job["width"])]
    steps = list(dict.fromkeys(drawn))
    ends = depth_of(job["node"]) + 1 == depth
    made = [
        node(f"{job['node']}.{i}", round_score(chance.random()) if ends else None, action=step)
        for i, step in enumerate(steps)
    ]
    counted = [{**child, "samples": drawn.count(step)} for child, step in zip(made, steps, strict=True)]
    return [Child(child, not ends) for child in counted]  # type: ignore[arg-type]


def searching(size: int, seed: int, depth: int = 4) -> Search:
    return Search(BestOfN(size), seed, depth, few_steps)


def finished(search: Search) -> int:
    """How many trajectories have come to their end."""
    return sum(
        get_extra(stat, "chains", 1) for stat in search.stats.values() if stat["closed"] and not stat["children"]
    )


@sometimes
@given(SIZES, SEEDS, st.integers(1, 8))
def test_as_many_trajectories_end_as_were_begun_whatever_they_share(size: int, seed: int, slots: int) -> None:
    search = searching(size, seed)
    search.run(10_000, slots)
    assert search.ask() == []
    assert finished(search) == size
    chains = {key: stat["own"]["chains"] for key, stat in search.stats.items() if key != ROOT}
    assert [sum(chains[key] for key in chains if depth_of(key) == level) for level in range(1, 5)] == [size] * 4
    assert all(stat["closed"] for stat in search.stats.values())


@sometimes
@given(SIZES, SEEDS)
def test_what_is_asked_for_is_as_wide_as_the_trajectories_that_have_come_there(size: int, seed: int) -> None:
    search = searching(size, seed)
    search.interleave(60)
    for job, _ in search.done[1:]:
        key = str(job["node"])
        assert job["width"] == (size if key == ROOT else search.tree[key]["samples"])


@sometimes
@given(SIZES, SEEDS)
def test_each_answer_is_seen_by_all_nodes_above_it(size: int, seed: int) -> None:
    search = searching(size, seed)
    search.interleave(60)
    for node_id, stat in search.stats.items():
        below = [node["score"] for key, node in search.tree.items() if node_id in upwards(key)]
        scores = [score for score in below if score is not None]
        assert (stat["visits"], stat["total"]) == (len(scores), sum(scores))


@sometimes
@given(SIZES, SEEDS, st.integers(1, 8), st.integers(0, 8), st.randoms(use_true_random=False))
def test_results_may_come_in_any_order(size: int, seed: int, slots: int, jobs: int, chance: random.Random) -> None:
    any_order_gives_the_same(searching(size, seed), searching(size, seed), slots, jobs, chance)


@sometimes
@given(SIZES, SEEDS)
def test_telling_twice_and_withdrawing_do_no_harm_and_nothing_is_changed(size: int, seed: int) -> None:
    search = searching(size, seed)
    search.interleave(40)
    before = copy.deepcopy(search.stats)
    for job, kids in search.done:
        assert tell(search.algorithm, search.stats, job, kids) == {}
    for job in search.ask(3):
        withdraw(search.stats, job)
        search.withdraw(job)
    assert search.stats == before


@sometimes
@given(SIZES, SEEDS, st.integers(1, 12))
def test_jobs_in_flight_are_at_different_ends(size: int, seed: int, slots: int) -> None:
    search = searching(size, seed)
    search.run(3)
    places = [job["node"] for job in search.ask(slots)]
    assert len(set(places)) == len(places) <= slots
    assert not any(search.stats[str(key)]["children"] for key in places)


def test_a_trajectory_comes_to_its_end_before_the_next_one_is_taken_up() -> None:
    def apart(seed: int, job: Job, depth: int) -> list[Child]:
        width = 1 if not job["node"] else job["width"]
        places = [ROOT] if not job["node"] else [f"{job['node']}.{i}" for i in range(width)]
        return [Child(node(key, None, kind="root"), depth_of(key) < 3) for key in places]

    search = Search(BestOfN(2), comes=apart)
    assert search.run(10) == ["0", "0.0", "0.0.0", "0.1", "0.1.0"]


def test_a_trajectory_whose_next_step_is_not_to_be_had_has_ended() -> None:
    search = Search(BestOfN(2), comes=lambda seed, job, depth: [] if job["node"] else few_steps(seed, job, depth))
    assert search.run(10) == ["0"]
    assert search.stats[ROOT]["closed"]
    assert BestOfN().exhausted == "all trajectories have ended"


# What it comes to


def success(size: int, right: Fraction, depth: int) -> Fraction:
    """The exact chance that one of the trajectories takes the right step so many times: all that may come of each job
    is followed, with its probability."""
    algorithm = BestOfN(size)

    def outcomes(job: Job) -> list[tuple[Fraction, list[Child]]]:
        key, width = str(job["node"]), job["width"]
        found = []
        for rights in range(width + 1):
            chance = math.comb(width, rights) * right**rights * (1 - right) ** (width - rights)
            counts = [("right", rights), ("wrong", width - rights)]
            made = [
                Child(node(f"{key}.{i}", None, kind="action", action=step, samples=count), _goes_on(key, step))
                for i, (step, count) in enumerate((step, count) for step, count in counts if count)
            ]
            found.append((chance, made))
        return found

    def _goes_on(key: str, step: str) -> bool:
        return step == "right" and depth_of(key) + 1 < depth

    def chance_of(stats: Stats) -> Fraction:
        jobs, sent = ask(algorithm, stats)
        if not jobs:
            return Fraction(0)
        total, seen = Fraction(0), merge_stats(stats, [sent])
        for chance, made in outcomes(jobs[0]):
            ended = any(child.node["action"] == "right" and depth_of(child.node["id"]) == depth for child in made)
            then = merge_stats(seen, [tell(algorithm, seen, jobs[0], made)])
            total += chance * (1 if ended else chance_of(then))
        return total

    return chance_of(tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)]))


@pytest.mark.parametrize(("size", "depth"), [(1, 3), (2, 1), (2, 3), (4, 2), (5, 2)])
@pytest.mark.parametrize("right", [Fraction(1, 3), Fraction(3, 5)])
def test_the_chance_of_success_is_that_of_independent_trajectories(size: int, depth: int, right: Fraction) -> None:
    assert success(size, right, depth) == 1 - (1 - right**depth) ** size


@pytest.mark.thorough
def test_a_measured_share_of_successes_is_the_expected_one() -> None:
    """Of 4 trajectories of 2 steps, each right one time in three: 1 - (8/9)^4 of them succeed."""

    def succeeds(seed: int) -> bool:
        search = searching(4, seed, depth=2)
        search.run(100)
        return any(_all_first(search, key) for key in search.tree if depth_of(key) == 2)

    def _all_first(search: Search, key: str) -> bool:
        return [search.tree[node_id].get("action") for node_id in upwards(key)][:-1] == [0, 0]  # type: ignore[comparison-overlap]

    measured = sum(succeeds(seed) for seed in range(600)) / 600
    expected = 1 - (8 / 9) ** 4
    assert measured == pytest.approx(expected, abs=3.3 * math.sqrt(expected * (1 - expected) / 600))


def test_the_same_answer_twice_is_two_trajectories() -> None:
    search = searching(5, 1, depth=1)
    search.run(1)
    drawn: Sequence[int] = [node["samples"] for node in search.tree.values() if "samples" in node]
    assert len(drawn) < 5
    assert sum(drawn) == finished(search) == 5
