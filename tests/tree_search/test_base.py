"""What every search algorithm has in common: asking, telling, taking back, and the best of a tree."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.state.tree import NodeStats, Stats, TreeNode, changes_of, gain_stats, merge_nodes, merge_stats
from reflective_agents.tree_search.algorithms.mcts import Mcts
from reflective_agents.tree_search.base import START, Child, Job, ask, leaf, tell, value, with_extra, withdraw
from reflective_agents.tree_search.tree_paths import (
    ROOT,
    best_answer,
    best_node,
    children,
    furthest_node,
    parent_of,
    path,
    upwards,
)
from tests.tree_search.algorithms.growing import Search, node
from tests.tree_search.laws import any_order_gives_the_same, nothing_given_is_changed, telling_twice_changes_nothing

SEEDS = st.integers(0, 10**6)
sometimes = settings(deadline=None)
ALGORITHMS = [Mcts(3), Mcts(3, simulate=True), Mcts(2, 0.2, simulate=True, max_rollouts=6)]
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)


def in_flight(stats: Stats) -> dict[str, tuple[int, list[int]]]:
    """The virtual losses that are there, and the jobs that they come from."""
    found = {key: (stat.get("virtual", 0), stat.get("flight", [])) for key, stat in stats.items()}
    return {key: what for key, what in found.items() if what != (0, [])}


def settled(stats: Stats) -> Stats:
    """Statistics without the count of rollouts, which those that were given up had begun as well."""
    return {key: with_extra(stat, begun=None) for key, stat in stats.items()}


def test_the_first_job_makes_the_root_and_needs_no_statistics() -> None:
    assert ask(Mcts(), {}, max_jobs=4) == ([START], {})
    assert ask(Mcts(), {}, max_jobs=0) == ([], {})
    root = Child(node(ROOT, 0.25), True)
    stats = tell(Mcts(), {}, START, [root])
    assert stats == {ROOT: {"visits": 1, "total": 0.25, "children": 0, "closed": False}}
    assert tell(Mcts(), stats, START, [root]) == {}


def test_a_job_in_flight_is_a_virtual_loss_from_the_root_to_its_place() -> None:
    search = Search(Mcts(2))
    search.run(1)
    (job,) = search.ask()
    assert in_flight(search.stats) == {ROOT: (1, []), str(job["node"]): (1, [0])}
    search.tell(job)
    assert in_flight(search.stats) == {}


@every_algorithm
@sometimes
@given(SEEDS, st.integers(1, 8), st.integers(0, 12))
def test_jobs_asked_for_at_once_are_at_different_leaves(algorithm: Mcts, seed: int, slots: int, jobs: int) -> None:
    search = Search(algorithm, seed)
    search.run(jobs)
    sent = search.ask(slots)
    places = [str(job["node"]) for job in sent]
    assert len(set(places)) == len(places) <= slots
    for key in places:
        assert not search.stats[key]["children"]
        assert not search.stats[key]["closed"]
    assert len(places) == slots or search.ask() == []


@every_algorithm
@sometimes
@given(SEEDS, st.integers(1, 6), st.integers(0, 10), st.randoms(use_true_random=False))
def test_results_may_come_in_any_order(
    algorithm: Mcts, seed: int, slots: int, jobs: int, chance: random.Random
) -> None:
    any_order_gives_the_same(Search(algorithm, seed), Search(algorithm, seed), slots, jobs, chance)


@every_algorithm
@sometimes
@given(SEEDS)
def test_telling_twice_does_no_harm(algorithm: Mcts, seed: int) -> None:
    telling_twice_changes_nothing(Search(algorithm, seed))


@every_algorithm
@sometimes
@given(SEEDS, st.integers(0, 12), st.integers(1, 6))
def test_what_is_withdrawn_leaves_nothing_behind(algorithm: Mcts, seed: int, jobs: int, slots: int) -> None:
    search = Search(algorithm, seed)
    search.run(jobs)
    before = search.stats
    sent = search.ask(slots)
    for job in sent:
        search.withdraw(job)
    assert in_flight(search.stats) == {}
    assert settled(search.stats) == settled(before)
    for job in sent:
        assert withdraw(search.stats, job) == {}
        assert tell(algorithm, search.stats, job, [Child(node(f"{job['node']}.0"), True)]) == {}


@every_algorithm
@sometimes
@given(SEEDS)
def test_nothing_is_in_flight_after_all_was_told_or_withdrawn(algorithm: Mcts, seed: int) -> None:
    search = Search(algorithm, seed)
    search.interleave(40)
    assert in_flight(search.stats) == {}
    assert set(search.tree) == set(search.stats)


@every_algorithm
@sometimes
@given(SEEDS)
def test_nothing_that_is_given_is_changed(algorithm: Mcts, seed: int) -> None:
    nothing_given_is_changed(Search(algorithm, seed))


@every_algorithm
@sometimes
@given(SEEDS)
def test_a_branch_is_closed_when_nothing_below_it_can_be_expanded(algorithm: Mcts, seed: int) -> None:
    search = Search(algorithm, seed, depth=3)
    search.interleave(60)
    expandable = {child.node["id"] for _, kids in search.done for child in kids if child.expandable}

    def closed(key: str) -> bool:
        """The definition, read from the tree alone."""
        if key in done:
            return all(closed(kid) for kid in search.tree if parent_of(kid) == key)
        found = search.tree[key]
        return key not in expandable or (found["score"] is None and found["kind"] != "root")

    done = {job["node"] for job, _ in search.done}
    assert {key: stat["closed"] for key, stat in search.stats.items()} == {key: closed(key) for key in search.tree}


def test_a_job_that_is_not_in_flight_is_not_told() -> None:
    search = Search(Mcts(2))
    job = Job(node=ROOT, kind="expand", first=0, width=2)
    kids = [Child(node("0.0"), True)]
    assert tell(search.algorithm, search.stats, job, kids) == {}
    assert tell(search.algorithm, search.stats, {**job, "node": "0.7"}, kids) == {}
    assert withdraw(search.stats, job) == {}


def test_an_unjudged_node_counts_no_visit_and_is_closed_unless_it_is_the_root_of_a_task() -> None:
    assert leaf(Child(node("0.1", None), True)) == {"visits": 0, "total": 0.0, "children": 0, "closed": True}
    assert not leaf(Child(node(ROOT, None, kind="root"), True))["closed"]
    assert leaf(Child(node("0.1", 0.5), False))["closed"]
    assert value(leaf(Child(node("0.1", None), True))) == 0
    assert value(NodeStats(visits=4, total=3.0, children=0, closed=False)) == 0.75


def test_places_in_the_tree() -> None:
    tree = {key: node(key) for key in ("0", "0.1", "0.1.10", "0.2")}
    assert [step["id"] for step in path(tree, "0.1.10")] == ["0", "0.1", "0.1.10"]
    assert list(upwards("0.1.10")) == ["0.1.10", "0.1", "0"]
    assert parent_of("0") is None
    stats = {"0": NodeStats(visits=0, total=0.0, children=3, closed=False), "0.1": leaf(Child(node("0.1"), True))}
    assert children(stats, "0") == ["0.1"]


@sometimes
@given(st.permutations([("0", 0.2), ("0.0", 0.9), ("0.1", 0.9), ("0.0.1", 0.9), ("0.0.0", None), ("0.10", 0.9)]))
def test_the_best_answer_is_the_shallowest_first_of_the_best(entries: list[tuple[str, float | None]]) -> None:
    tree = {node_id: node(node_id, score) for node_id, score in entries}
    assert best_answer(tree) == best_node(tree) == tree["0.0"]


@pytest.mark.parametrize(
    ("scores", "furthest"),
    [
        ({"0": None}, "0"),
        ({"0": None, "0.0": None, "0.0.0": None, "0.1": None, "0.1.0": None, "0.1.0.0": None}, "0.1.0.0"),
        ({"0": None, "0.0": 0.3, "0.1": 0.6, "0.1.0": 0.6, "0.0.0": 0.3, "0.0.0.0": 0.3}, "0.1.0"),
        ({"0": None, "0.0": 0.3, "0.1": 0.6, "0.1.0": 0.4, "0.1.1": None}, "0.1.1"),
        ({"0": None, "0.0": 0.0, "0.1": None}, "0.0"),
    ],
)
def test_the_furthest_node_ends_the_longest_of_the_best_trajectories(
    scores: dict[str, float | None], furthest: str
) -> None:
    found = furthest_node({key: node(key, score, kind="action") for key, score in scores.items()})
    assert found is not None
    assert found["id"] == furthest


def test_a_trajectory_that_has_ended_without_an_answer_comes_after_those_that_are_open() -> None:
    ended: TreeNode = {**node("0.0.0", 0.0, kind="action"), "done": True}
    tree = {"0": node("0", None), "0.0": node("0.0", None), "0.0.0": ended, "0.1": node("0.1", None)}
    assert furthest_node(tree) == tree["0.0"]
    assert furthest_node({}) is None


def test_a_solved_answer_wins_even_at_score_0_and_a_search_never() -> None:
    tree = {"0": node("0", 1.0, kind="action"), "0.0": node("0.0", 0.9), "0.1": node("0.1", 0.0, solved=True)}
    best = best_answer(tree)
    assert best is not None
    assert best["id"] == "0.1"
    assert best_answer({"0": tree["0"]}) is None
    assert best_node({}) is None


def test_an_unjudged_answer_is_better_than_none() -> None:
    assert best_answer({"0": node("0", None)}) == node("0", None)


@sometimes
@given(SEEDS)
def test_reducers_do_not_care_how_writes_are_batched(seed: int) -> None:
    search = Search(Mcts(3), seed)
    search.run(8)
    nodes = [{key: value} for key, value in search.tree.items()]
    entries = [{key: value} for key, value in search.stats.items()]
    half = len(nodes) // 2
    assert merge_nodes(merge_nodes({}, nodes[:half]), nodes[half:]) == merge_nodes({}, nodes) == search.tree
    assert merge_stats(merge_stats({}, entries[:half]), entries[half:]) == merge_stats({}, entries) == search.stats


def test_changes_of_statistics_keep_what_the_algorithm_has_noted() -> None:
    first = {"0": {"visits": 1, "total": 0.5, "own": {"begun": 1, "best": 0.5}}}
    stats = gain_stats({}, [first, {"0": {"children": 2, "own": {"begun": 2}}}])
    assert stats == {
        "0": {**NodeStats(visits=1, total=0.5, children=2, closed=False), "own": {"begun": 2, "best": 0.5}}
    }
    after = {"0": with_extra(stats["0"], begun=3)}
    assert changes_of(after, stats) == {"0": {"own": {"begun": 3}}}
    assert gain_stats(stats, [changes_of(after, stats)]) == after
