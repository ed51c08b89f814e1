"""Reasoning via planning as a search: priors, rollouts, and what is passed up by mean and by maximum."""

import itertools
import math
import random
from collections import defaultdict
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.state.tree import NodeStats, Stats, merge_nodes, merge_stats
from reflective_agents.tree_search.algorithms.rap import Rap
from reflective_agents.tree_search.base import START, Child, Job, ask, get_extra, tell, with_extra, withdraw
from reflective_agents.tree_search.tree_paths import ROOT, children, depth_of, parent_of, upwards
from tests.tree_search.algorithms.growing import Search, node
from tests.tree_search.algorithms.test_mcts import Counted
from tests.tree_search.laws import any_order_gives_the_same, nothing_given_is_changed, telling_twice_changes_nothing

SEEDS = st.integers(0, 10**6)
WEIGHTS = st.floats(0, 5)
sometimes = settings(deadline=None)
ENDLESS: dict[str, Any] = {"max_rollouts": None, "min_paths": 10**6}
ALGORITHMS = [Rap(3, aggregate="mean", **ENDLESS), Rap(3, aggregate="max", **ENDLESS), Rap(2, 0.2, max_rollouts=6)]
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
both = pytest.mark.parametrize("aggregate", ["mean", "max"])
NO_VOTES: list[float] = []


def proposed(node_id: str, r0: float | None) -> Child:
    terms = {} if r0 is None else {"terms": {"r0": r0}}
    return Child(node(node_id, None, kind="action", **terms), r0 is not None)


def visited(node_id: str, score: float, expandable: bool = True, key: str = "", **more: Any) -> Child:
    return Child(node(node_id, score, kind="answer" if key else "action", **more), expandable, key)


def visit(seed: int, job: Job, depth: int) -> list[Child]:
    """What comes of a visit: some fail, some end the path, and some of these with the environment's reward."""
    node_id = job["node"]
    if not node_id:
        return [Child(node(ROOT, None, kind="root"), True)]
    chance = random.Random(f"{seed} {node_id}")
    if node_id != ROOT and chance.random() < 0.1:
        return []
    ends = node_id != ROOT and (depth_of(node_id) >= depth or chance.random() < 0.2)
    given = {"reward": chance.choice([0.0, 0.5, 1.0])} if ends and chance.random() < 0.5 else {}
    key = chance.choice([node_id, "0.0"]) if ends and not given else ""
    own = [] if node_id == ROOT else [visited(node_id, given.get("reward", chance.random()), not ends, key, **given)]
    priors = [chance.choice([None, *(chance.random() for _ in range(9))]) for _ in range(chance.randint(0, 3))]
    return own if ends else own + [proposed(f"{node_id}.{i}", prior) for i, prior in enumerate(priors)]


def planned(algorithm: Rap, seed: int, depth: int = 5) -> Search:
    return Search(algorithm, seed, depth, visit)


def expected(search: Search) -> tuple[dict[str, list[Fraction]], dict[str, list[Fraction]]]:
    """What was passed up to each place, and the votes for each answer, worked out from all that was told."""
    passed: dict[str, list[Fraction]] = defaultdict(list)
    votes: dict[str, list[Fraction]] = defaultdict(list)
    for job, grown in search.done[1:]:
        key = str(job["node"])
        own = next((child for child in grown if child.node["id"] == key), None)
        if any(child.expandable for child in grown if child is not own):
            continue
        way = [search.tree[step] for step in upwards(key)][::-1]
        rewards = [(step["id"], Fraction(step["score"])) for step in way if step["score"] is not None]
        for above in [ROOT, *(step for step, _ in rewards)] if rewards else []:
            below = [reward for step, reward in rewards if above in upwards(step)]
            mean = sum(below, Fraction()) / len(below)
            passed[above].append(Fraction(own.node["reward"]) if own and "reward" in own.node else mean)
        if own and own.key:
            votes[own.key].append(passed[ROOT][-1])
    return passed, votes


def play(stats: Stats, algorithm: Rap, *grown: Child) -> tuple[str | None, Stats]:
    """Ask for a job, tell what came of it, and say where it was."""
    (job,), changes = ask(algorithm, stats)
    stats = merge_stats(stats, [changes])
    return job["node"], merge_stats(stats, [tell(algorithm, stats, job, grown)])


@both
def test_two_rollouts_by_hand(aggregate: Literal["mean", "max"]) -> None:
    """The first goes down the highest priors, 0.75 and then the first of two that are 0.5: its rewards are 0.5, 1 and
    0.75. The second is at 0.1: after one rollout ln 1 = 0 leaves 0.75 for `0.0`, and 0.8 for `0.1`."""
    algorithm = Rap(2, 1.0, aggregate=aggregate)
    stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    first, stats = play(stats, algorithm, proposed("0.0", 0.875), proposed("0.1", 0.8))
    second, stats = play(stats, algorithm, visited("0.0", 0.5), proposed("0.0.0", 0.5), proposed("0.0.1", 0.5))
    assert [stats[key]["visits"] for key in (ROOT, "0.0")] == [0, 0], "nothing is passed up before the end"
    third, stats = play(stats, algorithm, visited("0.0.0", 1.0), proposed("0.0.0.0", 0.1))
    fourth, stats = play(stats, algorithm, visited("0.0.0.0", 0.75, False, "0.0.0.0"))
    assert [first, second, third, fourth] == ["0", "0.0", "0.0.0", "0.0.0.0"]
    passed = {"0.0.0.0": 0.75, "0.0.0": 0.875, "0.0": 0.75, "0": 0.75}
    assert {key: algorithm.q_value(stats[key]) for key in passed} == passed
    fifth, stats = play(stats, algorithm, visited("0.1", 0.25, False, "0.1"))
    assert fifth == "0.1"
    assert stats[ROOT]["visits"] == 2
    assert algorithm.q_value(stats[ROOT]) == (0.5 if aggregate == "mean" else 0.75)
    assert [stats[key]["own"]["votes"] for key in (ROOT, "0.0.0.0", "0.1")] == [[2, 1.0], [1, 0.75], [1, 0.25]]
    assert stats[ROOT]["own"]["lead"] == "0.0.0.0"
    assert "rollouts" not in stats[ROOT]["own"]


def test_the_reward_of_the_environment_takes_the_place_of_all_others_on_its_path() -> None:
    algorithm = Rap(1, aggregate="mean")
    stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    _, stats = play(stats, algorithm, proposed("0.0", 0.9), proposed("0.1", 0.1))
    _, stats = play(stats, algorithm, visited("0.0", 1.0), proposed("0.0.0", 0.9), proposed("0.0.1", 0.9))
    _, stats = play(stats, algorithm, visited("0.0.0", 0.0, False, reward=0.0))
    assert [algorithm.q_value(stats[key]) for key in ("0.0.0", "0.0", ROOT)] == [0.0, 0.0, 0.0]
    assert algorithm.q_value(stats["0.0.1"]) == 0.9, "a step that was not visited is worth its prior"


def test_a_fault_ends_a_path_where_it_stood() -> None:
    algorithm = Rap(1, aggregate="mean")
    stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    _, stats = play(stats, algorithm, proposed("0.0", 0.9))
    _, stats = play(stats, algorithm, visited("0.0", 0.5), proposed("0.0.0", 0.9))
    _, stats = play(stats, algorithm)
    assert (stats["0.0.0"]["visits"], stats["0.0"]["visits"], stats[ROOT]["total"]) == (0, 1, 0.5)
    assert stats[ROOT]["closed"]
    assert ask(algorithm, stats) == ([], {})


@pytest.mark.parametrize(
    ("paths", "outcome"),
    [
        ([], None),
        ([("a", 0.8), ("a", 0.8)], None),
        ([("a", 0.5), ("a", 0.5), ("a", 0.5)], "3 of 3 paths agree on the answer, with 100% of the weight"),
        ([("a", 0.75), ("b", 0.5), ("a", 0.75)], "2 of 3 paths agree on the answer, with 75% of the weight"),
        ([("a", 0.625), ("b", 0.75), ("a", 0.625)], None),
        ([("b", 0.125), ("b", 0.125), ("a", 1.0)], "1 of 3 paths agree on the answer, with 80% of the weight"),
        ([("a", 0.0), ("a", 0.0), ("a", 0.0)], "3 of 3 paths agree on the answer, with 100% of the weight"),
    ],
)
def test_paths_that_agree_end_the_search(paths: list[tuple[str, float]], outcome: str | None) -> None:
    algorithm = Rap(exploration_weight=0.0)
    stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    _, stats = play(stats, algorithm, *(proposed(f"0.{i}", 0.9 - i / 10) for i in range(4)))
    first: dict[str, str] = {}
    for number, (answer, reward) in enumerate(paths):
        assert algorithm.ended(stats) is None
        end = visited(f"0.{number}", reward, False, first.setdefault(answer, f"0.{number}"))
        _, stats = play(stats, algorithm, end)
    assert algorithm.ended(stats) == (("answered", outcome) if outcome else None)
    assert (algorithm.choose(stats) is None) == (outcome is not None)
    assert Rap(min_paths=4).ended(stats) is None


def test_a_virtual_loss_is_a_visit_that_has_brought_nothing() -> None:
    for algorithm in (Rap(aggregate="mean"), Rap(aggregate="max")):
        seen = NodeStats(visits=3, total=2.4, children=2, closed=False, own={"prior": 0.1, "best": 0.8}, virtual=1)
        assert algorithm.bound(seen, 6) == pytest.approx(0.8 * 3 / 4 + math.sqrt(math.log(6) / 4))
        new = NodeStats(visits=0, total=0.0, children=2, closed=False, own={"prior": 0.5}, virtual=1)
        assert algorithm.bound(new, 6) == pytest.approx(0.5 / 2 + math.sqrt(math.log(6) / 2))


@every_algorithm
@sometimes
@given(SEEDS)
def test_what_is_passed_up_is_that_of_the_tree(algorithm: Rap, seed: int) -> None:
    search = planned(algorithm, seed, depth=4)
    search.interleave(60)
    passed, votes = expected(search)
    assert set(search.stats) == set(search.tree)
    for node_id, stat in search.stats.items():
        assert stat["visits"] == len(passed[node_id])
        if passed[node_id]:
            assert stat["total"] == pytest.approx(float(sum(passed[node_id])), abs=1e-7)
            worth = (
                max(passed[node_id]) if algorithm.aggregate == "max" else sum(passed[node_id]) / len(passed[node_id])
            )
            assert algorithm.q_value(stat) == pytest.approx(float(worth), abs=1e-7)
    counted = {
        key: voted
        for key, stat in search.stats.items()
        if (voted := get_extra(stat, "votes", NO_VOTES)) and key != ROOT
    }
    assert counted == {key: [len(each), pytest.approx(float(sum(each)), abs=1e-7)] for key, each in votes.items()}
    if counted:
        assert search.stats[ROOT]["own"]["votes"] == [sum(each[i] for each in counted.values()) for i in (0, 1)]
        assert search.stats[ROOT]["own"]["lead"] == min(counted, key=lambda key: (-counted[key][1], key))


@every_algorithm
@sometimes
@given(SEEDS)
def test_rollouts_go_down_the_highest_priors_to_the_end_of_the_path(algorithm: Rap, seed: int) -> None:
    search = planned(algorithm, seed, depth=4)
    search.run(30)
    following: str | None = None
    for job, grown in search.done[1:]:
        assert job["kind"] == ("simulate" if following else "expand")
        assert following in (None, job["node"])
        kids = [child for child in grown if child.node["id"] not in (job["node"], ROOT) and child.expandable]
        best = max(kids, key=lambda child: child.node["terms"]["r0"], default=None)
        following = best.node["id"] if best else None
    begun = [job for job, _ in search.done[1:] if job["kind"] == "expand"]
    assert get_extra(search.stats[ROOT], "begun", 0) == len(begun) <= (algorithm.max_rollouts or 10**9)


@both
@sometimes
@given(SEEDS, WEIGHTS)
def test_each_step_down_is_to_the_open_child_with_the_highest_bound(
    aggregate: Literal["mean", "max"], seed: int, weight: float
) -> None:
    search = planned(Rap(3, weight, aggregate=aggregate, **ENDLESS), seed, depth=4)
    search.run(20)
    while get_extra(search.stats[ROOT], "rollouts", []):
        search.run(len(search.done))
    passed, _ = expected(search)
    stats = search.stats
    way = [key for job in search.ask() for key in upwards(str(job["node"]))]
    for taken, parent in itertools.pairwise(way):
        bounds: dict[str, float] = {}
        for kid in children(stats, parent):
            seen = passed[kid] or [Fraction(get_extra(stats[kid], "prior", 0.0))]
            worth = float(max(seen) if aggregate == "max" else sum(seen) / len(seen))
            bonus = weight * math.sqrt(math.log(max(len(passed[parent]), 1)) / len(seen))
            bounds |= {} if stats[kid]["closed"] else {kid: worth + bonus}
        assert bounds[taken] == pytest.approx(max(bounds.values()), abs=1e-7)


@every_algorithm
@sometimes
@given(SEEDS, st.integers(1, 6), st.integers(0, 12))
def test_jobs_asked_for_at_once_are_at_different_places(algorithm: Rap, seed: int, slots: int, jobs: int) -> None:
    search = planned(algorithm, seed)
    search.run(jobs)
    sent = search.ask(slots)
    assert len({job["node"] for job in sent}) == len(sent)


@every_algorithm
@sometimes
@given(SEEDS, st.integers(1, 6), st.integers(0, 12), st.randoms(use_true_random=False))
def test_results_may_come_in_any_order(algorithm: Rap, seed: int, slots: int, jobs: int, chance: random.Random) -> None:
    any_order_gives_the_same(planned(algorithm, seed), planned(algorithm, seed), slots, jobs, chance)


@every_algorithm
@sometimes
@given(SEEDS)
def test_telling_twice_does_no_harm_and_nothing_stays_in_flight(algorithm: Rap, seed: int) -> None:
    telling_twice_changes_nothing(planned(algorithm, seed))


@every_algorithm
@sometimes
@given(SEEDS, st.integers(0, 12), st.integers(1, 6))
def test_what_is_withdrawn_leaves_nothing_behind(algorithm: Rap, seed: int, jobs: int, slots: int) -> None:
    search = planned(algorithm, seed)
    search.run(jobs)
    before = {key: with_extra(stat, begun=None) for key, stat in search.stats.items()}
    for job in search.ask(slots):
        search.withdraw(job)
        assert withdraw(search.stats, job) == {}
    assert {key: with_extra(stat, begun=None) for key, stat in search.stats.items()} == before


@every_algorithm
@sometimes
@given(SEEDS)
def test_nothing_that_is_given_is_changed(algorithm: Rap, seed: int) -> None:
    nothing_given_is_changed(planned(algorithm, seed))


@every_algorithm
@sometimes
@given(SEEDS)
def test_a_branch_is_closed_when_nothing_below_it_can_be_visited(algorithm: Rap, seed: int) -> None:
    search = planned(algorithm, seed, depth=3)
    search.interleave(60)
    grown = {str(job["node"]): kids for job, kids in search.done}

    def closed(key: str) -> bool:
        """The definition, read from what was told alone."""
        if key in grown:
            return all(closed(child.node["id"]) for child in grown[key] if child.node["id"] != key)
        return key != ROOT and "terms" not in search.tree[key]

    assert {key: stat["closed"] for key, stat in search.stats.items()} == {p: closed(p) for p in search.tree}


def test_what_a_step_looks_at_depends_on_the_depth_and_not_on_the_size_of_the_tree() -> None:
    for nodes in (101, 2001):
        algorithm = Rap(5, **ENDLESS)
        stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
        while len(stats) < nodes:
            (job,), changes = ask(algorithm, stats)
            stats.update(changes)
            key = str(job["node"])
            own = [] if key == ROOT else [visited(key, 0.5, depth_of(key) < 8)]
            kids = [proposed(f"{key}.{i}", 0.5) for i in range(5)] if depth_of(key) < 8 else []
            stats.update(tell(algorithm, stats, job, own + kids))
        view = Counted(stats)
        (job,), changes = ask(algorithm, view)
        stats.update(changes)
        grown = [visited(str(job["node"]), 0.5, False)]
        tell(algorithm, view, job, grown)
        assert view.looks <= 40 * 9


def test_a_visited_step_gains_what_it_had_left_open() -> None:
    new = proposed("0.0", 0.5).node
    done = visited("0.0", 0.7, key="a", terms={"r0": 0.5, "r1": 1.0}, observation="So.", done=True).node
    assert merge_nodes({}, [{"0.0": new}, {"0.0": done}]) == {"0.0": done}
    assert merge_nodes({"0.0": done}, [{"0.0": new}]) == {"0.0": done}
    assert parent_of("0.0") == ROOT
