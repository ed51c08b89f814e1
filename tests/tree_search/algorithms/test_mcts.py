"""Monte Carlo tree search as LATS has it: UCT, expansions, simulations, and what is passed up."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.state.tree import NodeStats, Stats, StatsView, merge_stats
from reflective_agents.tree_search.algorithms.mcts import Mcts, uct
from reflective_agents.tree_search.base import START, Child, ask, get_extra, tell, value, with_extra
from reflective_agents.tree_search.tree_paths import ROOT, children, upwards
from tests.tree_search.algorithms.growing import Search, node

SEEDS = st.integers(0, 10**6)
WEIGHTS = st.floats(0, 10)
sometimes = settings(deadline=None)


def seen(visits: int, total: float, kids: int = 0, closed: bool = False) -> NodeStats:
    return NodeStats(visits=visits, total=total, children=kids, closed=closed)


TWO_LEVELS = {
    "0": seen(5, 2.5, 2),
    "0.0": seen(1, 0.1),
    "0.1": seen(3, 2.4, 2),
    "0.1.0": seen(1, 0.9),
    "0.1.1": seen(1, 1.0, closed=True),
}


def test_uct_adds_the_bonus_to_the_mean_without_dividing_it_again() -> None:
    stats = seen(4, 3.6)
    assert value(stats) == pytest.approx(0.9)
    assert uct(stats, 6, 1.0) == pytest.approx(0.9 + math.sqrt(math.log(6) / 4), abs=1e-9)
    assert uct(stats, 6, 1.0) == pytest.approx(1.569, abs=1e-3)
    assert uct(stats, 6, 0.5) == pytest.approx(1.2346, abs=1e-4)
    assert uct(stats, 6, 0.0) == pytest.approx(0.9)


def test_uct_has_no_bonus_under_a_parent_that_was_never_visited_and_no_end_before_the_first_visit() -> None:
    assert uct(seen(2, 1.0), 0, 1.0) == 0.5
    assert uct(seen(0, 0.0), 3, 1.0) == math.inf


def test_a_virtual_loss_is_a_visit_that_has_brought_nothing() -> None:
    lost: NodeStats = {**seen(3, 2.4), "virtual": 1}
    assert uct(lost, 6, 1.0) == pytest.approx(2.4 / 4 + math.sqrt(math.log(6) / 4))
    assert uct(lost, 6, 1.0) == uct(seen(4, 2.4), 6, 1.0)
    assert value(lost) == pytest.approx(0.8)


@pytest.mark.parametrize(("weight", "chosen"), [(0.0, "0.1.0"), (100.0, "0.0")])
def test_selection_goes_level_by_level(weight: float, chosen: str) -> None:
    assert Mcts(exploration_weight=weight).select(TWO_LEVELS) == chosen


def test_several_leaves_are_chosen_as_if_those_in_flight_had_lost() -> None:
    """With w = 0 the means decide: `0.1` is worth 2.4 / 3 = 0.8, with one loss 0.6, and with two 0.48. `0.0` is a leaf,
    which is passed over while it is in flight, although half of 0.9 is more than 0.3."""
    stats = {
        "0": seen(6, 3.8, 3),
        "0.0": seen(1, 0.9),
        "0.1": seen(3, 2.4, 2),
        "0.1.0": seen(1, 0.8),
        "0.1.1": seen(1, 0.7),
        "0.2": seen(1, 0.3),
    }
    jobs, _ = ask(Mcts(exploration_weight=0.0), stats, max_jobs=5)
    assert [job["node"] for job in jobs] == ["0.0", "0.1.0", "0.1.1", "0.2"]


def test_nothing_to_select() -> None:
    assert Mcts().select({}) is None
    assert Mcts().select({"0": seen(1, 1.0, closed=True)}) is None
    assert ask(Mcts(), {"0": seen(1, 1.0, closed=True)}, 3) == ([], {})


def test_an_expansion_without_children_closes_the_leaf() -> None:
    stats = tell(Mcts(), {}, START, [Child(node(ROOT), True)])
    (job,), changes = ask(Mcts(), stats)
    stats = merge_stats(stats, [changes])
    assert tell(Mcts(), stats, job, [])[ROOT] == with_extra(seen(1, 0.5, closed=True), begun=1)


def test_all_scores_of_an_expansion_are_passed_up_at_once() -> None:
    stats = tell(Mcts(3), {}, START, [Child(node(ROOT, 0.5), True)])
    (job,), changes = ask(Mcts(3), stats)
    kids = [Child(node("0.0", 0.25), True), Child(node("0.1", None), True), Child(node("0.2", 1.0), False)]
    stats = merge_stats(stats, [changes, tell(Mcts(3), merge_stats(stats, [changes]), job, kids)])
    assert stats == {
        "0": with_extra(seen(3, 1.75, 3), begun=1),
        "0.0": seen(1, 0.25),
        "0.1": seen(0, 0.0, closed=True),
        "0.2": seen(1, 1.0, closed=True),
    }


def play(stats: Stats, algorithm: Mcts, kids: list[Child]) -> tuple[str | None, Stats]:
    """Ask for a job, tell what came of it, and say where it was."""
    (job,), changes = ask(algorithm, stats)
    stats = merge_stats(stats, [changes])
    made = [Child({**child.node, "id": f"{job['node']}.{i}"}, child.expandable) for i, child in enumerate(kids)]
    return job["node"], merge_stats(stats, [tell(algorithm, stats, job, made)])


def test_a_simulation_goes_on_from_the_best_child_and_passes_up_the_reward_at_its_end() -> None:
    algorithm = Mcts(2, simulate=True)
    stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    first, stats = play(stats, algorithm, [Child(node("", 0.25), True), Child(node("", 0.75), True)])
    assert stats["0"]["visits"] == 1, "nothing is passed up before the end"
    second, stats = play(stats, algorithm, [Child(node("", 0.5), True), Child(node("", 0.5), True)])
    third, stats = play(stats, algorithm, [Child(node("", 0.125), True), Child(node("", 1.0), False)])
    assert [first, second, third] == ["0", "0.1", "0.1.0"]
    assert {key: (stat["visits"], stat["total"]) for key, stat in stats.items()} == {
        "0": (2, 1.0),
        "0.0": (1, 0.25),
        "0.1": (2, 1.75),
        "0.1.0": (2, 1.5),
        "0.1.1": (1, 0.5),
        "0.1.0.0": (1, 0.125),
        "0.1.0.1": (1, 1.0),
    }
    assert "rollouts" not in stats["0"]["own"]
    assert stats["0"]["own"]["begun"] == 1


def test_the_second_simulated_rollout_explores_too() -> None:
    """The first one is worth 0.125 at its end, which leaves `0.0` with (0.5 + 0.125) / 2 = 0.3125, and `0.1` with 0.25.
    The root counts as visited once before it, so the bonus is sqrt(ln 2 / N): more for `0.1`, which has N = 1."""
    algorithm = Mcts(2, simulate=True)
    stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    _, stats = play(stats, algorithm, [Child(node("", 0.5), True), Child(node("", 0.25), True)])
    _, stats = play(stats, algorithm, [Child(node("", 0.125), False), Child(node("", 0.0), True)])
    assert value(stats["0.0"]) > value(stats["0.1"])
    assert algorithm.select(stats) == "0.1"


def test_rollouts_are_counted_where_they_begin_and_end_the_search_at_their_limit() -> None:
    search = Search(Mcts(3, simulate=True, max_rollouts=3), seed=1)
    while search.ask():
        search.tell(search.flight[0])
    kinds = Counter(job["kind"] for job, _ in search.done)
    assert kinds["expand"] == search.stats[ROOT]["own"]["begun"] == 3
    assert kinds["simulate"] >= 3
    assert not search.stats[ROOT]["closed"]


@sometimes
@given(SEEDS, WEIGHTS)
def test_visits_and_totals_are_those_of_the_tree(seed: int, weight: float) -> None:
    search = Search(Mcts(3, weight), seed)
    search.interleave(40)
    for key, stat in search.stats.items():
        scores = [
            kept["score"] for kept in search.tree.values() if key in upwards(kept["id"]) and kept["score"] is not None
        ]
        assert (stat["visits"], stat["total"]) == (len(scores), sum(scores))
        assert 0 <= value(stat) <= 1


@sometimes
@given(SEEDS, WEIGHTS, st.sampled_from([None, 1, 4]))
def test_each_simulated_rollout_passes_up_exactly_one_reward(seed: int, weight: float, most: int | None) -> None:
    """The sums are computed again from what was told: a rollout ends where its best child is not expandable, or where
    there is none, in which case the place itself is worth what it was worth."""
    search = Search(Mcts(3, weight, simulate=True, max_rollouts=most), seed, depth=3)
    search.interleave(60)
    visits: Counter[str] = Counter([ROOT])  # which has no score of its own
    totals: Counter[str] = Counter()
    ends = 0
    for (job, kids), before in zip(search.done, search.before, strict=True):
        for child in kids:
            if child.node["score"] is not None:
                visits[child.node["id"]] += 1
                totals[child.node["id"]] += Fraction(child.node["score"])  # type: ignore[assignment]
        scored = [child for child in kids if child.node["score"] is not None]
        best = max(scored, key=lambda child: child.node["score"] or 0, default=None)
        if not job["node"] or (best and best.expandable):
            continue
        ends += 1
        for node_id in upwards(job["node"]):
            visits[node_id] += 1
            totals[node_id] += Fraction((best.node["score"] or 0) if best else value(before[job["node"]]))  # type: ignore[assignment]
    assert {node_id: stat["visits"] for node_id, stat in search.stats.items()} == {p: visits[p] for p in search.tree}
    for node_id, stat in search.stats.items():
        assert stat["total"] == pytest.approx(float(totals[node_id]), abs=1e-12)
    assert ends + len(get_extra(search.stats[ROOT], "rollouts", [])) <= get_extra(search.stats[ROOT], "begun", 0)


@sometimes
@given(SEEDS)
def test_one_rollout_at_a_time_ends_before_the_next_one_begins(seed: int) -> None:
    search = Search(Mcts(3, simulate=True), seed)
    search.run(25)
    under_way: list[str] = []
    for (job, kids), before in zip(search.done[1:], search.before[1:], strict=True):
        assert job["kind"] == ("simulate" if under_way else "expand")
        assert [job["node"]] == under_way or job["kind"] == "expand"
        assert get_extra(before[ROOT], "rollouts", []) == under_way
        scored = [child for child in kids if child.node["score"] is not None]
        best = max(scored, key=lambda child: child.node["score"] or 0, default=None)
        under_way = [best.node["id"]] if best and best.expandable else []


@sometimes
@given(SEEDS, WEIGHTS, st.integers(1, 4))
def test_no_leaf_is_expanded_twice_and_none_that_may_not_be(seed: int, weight: float, slots: int) -> None:
    search = Search(Mcts(3, weight), seed)
    places = search.run(30, slots)
    assert len(set(places)) == len(places)
    closed = {child.node["id"] for _, kids in search.done for child in kids if not child.expandable}
    assert not closed & set(places)
    assert (search.ask() == []) == search.stats[ROOT]["closed"]


@sometimes
@given(SEEDS, WEIGHTS)
def test_each_step_down_is_to_the_open_child_with_the_highest_bound(seed: int, weight: float) -> None:
    search = Search(Mcts(3, weight), seed)
    search.run(12)
    stats = search.stats
    way = [key for job in search.ask() for key in upwards(str(job["node"]))]
    for taken, parent in itertools.pairwise(way):
        bounds = {
            kid: value(stats[kid]) + weight * math.sqrt(math.log(stats[parent]["visits"]) / stats[kid]["visits"])
            for kid in children(stats, parent)
            if not stats[kid]["closed"]
        }
        assert bounds[taken] == pytest.approx(max(bounds.values()), rel=1e-12)


@sometimes
@given(SEEDS, WEIGHTS, st.booleans())
def test_the_same_results_give_the_same_tree(seed: int, weight: float, simulate: bool) -> None:
    first, other = (Search(Mcts(3, weight, simulate), seed) for _ in range(2))
    assert first.run(20) == other.run(20)
    assert first.stats == other.stats


class Counted(Mapping[str, NodeStats]):
    """Statistics that count how often they are looked at; who goes through them all is caught."""

    def __init__(self, stats: StatsView) -> None:
        self.stats, self.looks = stats, 0

    def __getitem__(self, key: str) -> NodeStats:
        self.looks += 1
        return self.stats[key]

    def __contains__(self, key: object) -> bool:
        self.looks += 1
        return key in self.stats

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all statistics are gone through")

    def __len__(self) -> int:
        return len(self.stats)


def grown(nodes: int, depth: int) -> Stats:
    """The statistics of a tree of so many nodes, 5 to a parent, in which every leaf is open."""
    search = Search(Mcts(5, 1.0), depth=depth)
    stats = search.stats
    while len(stats) < nodes:
        (job,), changes = ask(search.algorithm, stats)
        stats.update(changes)
        kids = [Child(node(f"{job['node']}.{i}", 0.5), True) for i in range(5)]
        stats.update(tell(search.algorithm, stats, job, kids))
    return stats


@pytest.mark.matrix
@pytest.mark.parametrize("simulate", [False, True])
def test_what_a_step_looks_at_depends_on_the_depth_and_not_on_the_size_of_the_tree(simulate: bool) -> None:
    algorithm = Mcts(5, 1.0, simulate)
    for nodes in (101, 3001):
        stats = grown(nodes, depth=100)
        depth = max(key.count(".") for key in stats)
        view = Counted(stats)
        (job,), changes = ask(algorithm, view)
        stats.update(changes)
        tell(algorithm, view, job, [Child(node(f"{job['node']}.{i}", 0.5), True) for i in range(5)])
        assert view.looks <= 40 * (depth + 1)
