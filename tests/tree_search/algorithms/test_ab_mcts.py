"""Adaptive branching: what each choice has brought, what it is drawn by, and where the search goes for it."""

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.state.tree import NodeStats, Stats, merge_stats
from reflective_agents.tree_search.algorithms.ab_mcts import DEEPER, WIDER, AbMcts
from reflective_agents.tree_search.base import START, Child, Job, ask, get_extra, tell, with_extra, withdraw
from reflective_agents.tree_search.tree_paths import ROOT, depth_of, round_score, upwards
from tests.tree_search.algorithms.growing import Search, node
from tests.tree_search.laws import any_order_gives_the_same, nothing_given_is_changed, telling_twice_changes_nothing

SEEDS = st.integers(0, 10**6)
ALGORITHMS = st.builds(
    AbMcts, st.sampled_from([("",), ("a", "b"), ("a", "b", "c")]), st.sampled_from([0.5, 1.0, 5.0]), SEEDS.map(str)
)
sometimes = settings(deadline=None)


def settled(stats: Stats) -> Stats:
    """Statistics without how many jobs had begun: those that were given up had begun as well."""
    return {key: with_extra(stat, begun=None) for key, stat in stats.items()}


def run(search: Search, jobs: int) -> Search:
    search.run(jobs)
    return search


# What each choice has brought


def amounts(scores: Sequence[float]) -> list[float]:
    return [len(scores), sum(scores)]


def recomputed(search: Search) -> Stats:
    """Every figure by its definition, from the nodes and the jobs that were told."""
    scores = {key: found["score"] for key, found in search.tree.items() if found["score"] is not None}
    stats: Stats = {}
    for node_id in search.tree:
        below = [key for key in scores if node_id in upwards(key) and key != node_id]
        seen = [scores[key] for key in ([node_id] if node_id in scores else []) + below]
        ways = {
            WIDER: amounts([scores[key] for key in below if depth_of(key) == depth_of(node_id) + 1]),
            DEEPER: amounts([scores[key] for key in below if depth_of(key) > depth_of(node_id) + 1]),
        }
        stats[node_id] = NodeStats(visits=len(seen), total=sum(seen), children=0, closed=False)
        if arms := {way: brought for way, brought in ways.items() if brought[0]}:
            stats[node_id]["own"] = {"arms": arms}
    brought: dict[str, list[float]] = {}
    for job, children in search.done[1:]:
        of_job = [child.node["score"] for child in children if child.node["score"] is not None]
        if of_job or not children:
            brought[job["arm"]] = [*brought.get(job["arm"], []), *(of_job or [0.0])]
    if brought and len(search.algorithm.arms) > 1:
        stats[ROOT].setdefault("own", {})["models"] = {arm: amounts(all_of) for arm, all_of in brought.items()}
    return stats


@sometimes
@given(ALGORITHMS, SEEDS)
def test_all_figures_are_those_of_the_tree(algorithm: AbMcts, seed: int) -> None:
    search = Search(algorithm, seed, depth=4)
    search.interleave(80)
    assert {key: figures(stat) for key, stat in search.stats.items()} == {
        key: figures(stat) for key, stat in recomputed(search).items()
    }


def figures(stat: NodeStats) -> tuple[int, float, dict[str, object]]:
    return stat["visits"], stat["total"], {name: get_extra(stat, name, {}) for name in ("arms", "models")}


@sometimes
@given(ALGORITHMS, SEEDS)
def test_only_what_may_be_expanded_is_and_a_node_is_never_used_up(algorithm: AbMcts, seed: int) -> None:
    search = Search(algorithm, seed, depth=3)
    search.interleave(60)
    expandable = {child.node["id"] for _, kids in search.done for child in kids if child.expandable}
    judged = {key for key, found in search.tree.items() if found["score"] is not None or key == ROOT}
    assert {key for key, stat in search.stats.items() if not stat["closed"]} == expandable & judged
    assert {str(job["node"]) for job in search.ask(5)} <= expandable & judged


def told_by_hand(jobs: Sequence[tuple[str, str, float | None]], algorithm: AbMcts) -> Stats:
    """Statistics after these jobs: where, which child came of it, and its score; None for no child."""
    stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    for key, made, score in jobs:
        first = stats[key]["children"]
        job = Job(node=key, kind="expand", first=first, width=1, arm=algorithm.arms[0])
        sent: NodeStats = {**stats[key], "flight": [first]}
        children = [] if score is None else [Child(node(made, score), True)]
        stats = merge_stats(stats, [{key: sent}, tell(algorithm, {**stats, key: sent}, job, children)])
    return stats


def test_a_score_counts_for_going_wider_where_it_was_made_and_for_going_deeper_above() -> None:
    stats = told_by_hand([("0", "0.0", 0.5), ("0.0", "0.0.0", 0.75), ("0.0.0", "0.0.0.0", 1.0)], AbMcts())
    assert stats["0"]["own"]["arms"] == {WIDER: [1, 0.5], DEEPER: [2, 1.75]}
    assert stats["0.0"]["own"]["arms"] == {WIDER: [1, 0.75], DEEPER: [1, 1.0]}
    assert stats["0.0.0"]["own"]["arms"] == {WIDER: [1, 1.0]}
    assert (stats["0.0"]["visits"], stats["0.0"]["total"]) == (3, 2.25), "its own score is the first of its own"
    assert "models" not in stats["0"]["own"]


def test_a_child_that_has_come_up_before_counts_again_but_is_no_node() -> None:
    """What a new draw brings is seen where it was drawn, and above; the child itself is as it was."""
    stats = told_by_hand([("0", "0.0", 0.5), ("0.0", "0.0.0", 0.75), ("0.0", "0.0.0", 0.75)], AbMcts())
    assert set(stats) == {"0", "0.0", "0.0.0"}
    assert stats["0.0"]["own"]["arms"] == {WIDER: [2, 1.5]}
    assert stats["0"]["own"]["arms"] == {WIDER: [1, 0.5], DEEPER: [2, 1.5]}
    assert (stats["0.0.0"]["visits"], stats["0.0.0"]["total"]) == (1, 0.75)
    assert stats["0.0"]["children"] == 2, "the next one gets a new name"


def test_a_model_that_brings_nothing_has_brought_a_0() -> None:
    stats = told_by_hand([("0", "", None), ("0", "0.1", 0.5), ("0", "", None)], AbMcts(("a", "b")))
    assert stats["0"]["own"]["models"] == {"a": [3, 0.5]}
    assert stats["0"]["own"]["arms"] == {WIDER: [1, 0.5]}
    assert (stats["0"]["visits"], stats["0"]["children"]) == (1, 3)


# Asking and telling


@sometimes
@given(ALGORITHMS, SEEDS)
def test_nothing_that_is_given_is_changed(algorithm: AbMcts, seed: int) -> None:
    nothing_given_is_changed(Search(algorithm, seed))


@sometimes
@given(ALGORITHMS, SEEDS, st.integers(1, 8), st.integers(0, 12), st.randoms(use_true_random=False))
def test_results_may_come_in_any_order(
    algorithm: AbMcts, seed: int, slots: int, jobs: int, chance: random.Random
) -> None:
    any_order_gives_the_same(Search(algorithm, seed), Search(algorithm, seed), slots, jobs, chance)


@sometimes
@given(ALGORITHMS, SEEDS)
def test_telling_twice_does_no_harm_and_nothing_stays_in_flight(algorithm: AbMcts, seed: int) -> None:
    telling_twice_changes_nothing(Search(algorithm, seed))


@sometimes
@given(ALGORITHMS, SEEDS, st.integers(0, 12), st.integers(1, 6))
def test_what_is_withdrawn_leaves_nothing_behind(algorithm: AbMcts, seed: int, jobs: int, slots: int) -> None:
    search = run(Search(algorithm, seed), jobs)
    before = search.stats
    sent = search.ask(slots)
    for job in sent:
        search.withdraw(job)
    assert settled(search.stats) == settled(before)
    for job in sent:
        assert withdraw(search.stats, job) == {}
        assert tell(algorithm, search.stats, job, [Child(node(f"{job['node']}.{job['first']}"), True)]) == {}


@sometimes
@given(ALGORITHMS, SEEDS, st.integers(1, 30), st.integers(0, 20))
def test_jobs_asked_for_at_once_make_different_children(algorithm: AbMcts, seed: int, slots: int, jobs: int) -> None:
    search = run(Search(algorithm, seed), jobs)
    sent = search.ask(slots)
    made = [f"{job['node']}.{job['first']}" for job in sent]
    assert len(set(made)) == len(made) == slots, "going wider is always possible"
    assert not set(made) & set(search.tree)
    assert {job["arm"] for job in sent} <= set(algorithm.arms)
    assert {job["width"] for job in sent} == {1}


@sometimes
@given(ALGORITHMS, SEEDS)
def test_the_same_seed_gives_the_same_tree_and_another_one_another(algorithm: AbMcts, seed: int) -> None:
    first, again = run(Search(algorithm, seed), 30), run(Search(algorithm, seed), 30)
    assert (first.tree, first.stats) == (again.tree, again.stats)
    others = [run(Search(AbMcts(algorithm.arms, algorithm.prior, f"other {i}"), seed), 30).tree for i in range(3)]
    assert any(tree != first.tree for tree in others)


def test_a_root_that_is_closed_is_not_expanded() -> None:
    stats = {ROOT: NodeStats(visits=1, total=1.0, children=0, closed=True)}
    assert ask(AbMcts(), stats, 3) == ([], {})


# What is drawn


def drawn(stats: Stats, algorithm: AbMcts, times: int = 4000) -> list[Job]:
    """So many independent next jobs."""
    jobs = (algorithm.choose({**stats, ROOT: with_extra(stats[ROOT], begun=i)}) for i in range(times))
    return [job for job in jobs if job]


def share(jobs: Sequence[Job], key: str) -> float:
    return sum(job["node"] == key for job in jobs) / len(jobs)


@pytest.mark.parametrize(("score", "wider"), [(0.0, 0.5 - 2 / math.pi**2), (0.5, 0.5), (1.0, 0.5 + 2 / math.pi**2)])
def test_a_draw_from_the_posterior_of_going_wider_meets_one_from_the_prior_of_going_deeper(
    score: float, wider: float
) -> None:
    """With Jeffreys' prior: Beta(0.5 + score, 1.5 - score) against Beta(0.5, 0.5), for which there is a closed form."""
    stats = told_by_hand([("0", "0.0", score)], AbMcts())
    assert share(drawn(stats, AbMcts()), "0") == pytest.approx(wider, abs=4 * 0.5 / math.sqrt(4000))


def test_a_strong_prior_makes_the_draws_careful() -> None:
    stats = told_by_hand([("0", "0.0", 1.0)], AbMcts())
    assert share(drawn(stats, AbMcts(prior=100)), "0") == pytest.approx(0.5, abs=0.06)


@sometimes
@given(SEEDS, st.integers(1, 20))
def test_more_models_make_no_difference_to_where_the_search_goes(seed: int, jobs: int) -> None:
    """Each of them as a way of its own would outnumber going deeper."""
    search = run(Search(AbMcts(("a",)), seed), jobs)
    single, many = (drawn(search.stats, AbMcts(arms), 30) for arms in (("a",), tuple("abcdefgh")))
    assert [job["node"] for job in single] == [job["node"] for job in many]


# Where the search goes


def world(wide: float, deep: float, models: dict[str, float] | None = None) -> Search:
    """A search whose answers are good with a chance: the first ones, those that follow a critique, and of each
    model."""

    def comes(seed: int, job: Job, depth: int) -> list[Child]:
        if not job["node"]:
            return [Child(node(ROOT, None, kind="root"), True)]
        made = f"{job['node']}.{job['first']}"
        chance = models[job["arm"]] if models else wide if depth_of(made) == 1 else deep
        score = round_score(float(random.Random(f"{seed} {made} {job['arm']}").random() < chance))
        return [Child(node(made, score), depth_of(made) < depth)]

    return Search(AbMcts(tuple(models) if models else ("",)), comes=comes)


def majority(count: int, of: int = 30) -> bool:
    """Whether so many of 30 are more than chance would give: one time in a thousand it would."""
    return sum(math.comb(of, k) for k in range(count, of + 1)) < 2.0**of / 1000


def shares(wide: float, deep: float, jobs: int = 60) -> list[float]:
    """For each of 30 seeds, the share of the answers that were made at the root."""
    found = []
    for seed in range(30):
        search = world(wide, deep)
        search.seed, search.algorithm = seed, AbMcts(seed=f"{seed}")
        search.run(jobs)
        found.append(sum(depth_of(key) == 1 for key in search.tree) / jobs)
    return found


@pytest.mark.thorough
def test_where_first_answers_are_better_it_goes_wide_and_where_critiques_help_deep() -> None:
    wide, deep = shares(wide=0.7, deep=0.2), shares(wide=0.2, deep=0.7)
    assert majority(sum(share > 0.5 for share in wide))
    assert majority(sum(share < 0.5 for share in deep))
    assert sum(wide) / 30 > 0.75
    assert sum(deep) / 30 < 0.3


@pytest.mark.thorough
def test_of_several_children_the_one_that_leads_to_better_answers_is_gone_into_most() -> None:
    jobs = [("0", "0.0", 0.5), ("0", "0.1", 0.5)]
    jobs += [("0.0", f"0.0.{i}", 0.25) for i in range(8)] + [("0.1", f"0.1.{i}", 0.75) for i in range(8)]
    found = Counter(
        str(job["node"]).split(".")[1] for job in drawn(told_by_hand(jobs, AbMcts()), AbMcts()) if job["node"] != ROOT
    )
    assert found["1"] > 5 * found["0"]


@pytest.mark.thorough
def test_the_better_model_is_asked_more_often() -> None:
    better = []
    for seed in range(30):
        search = world(0, 0, models={"weak": 0.3, "strong": 0.7, "poor": 0.2})
        search.seed, search.algorithm = seed, AbMcts(("weak", "strong", "poor"), seed=f"{seed}")
        search.run(60)
        arms = Counter(job["arm"] for job, _ in search.done[1:])
        better.append(arms["strong"] > arms["weak"] + arms["poor"])
    assert majority(sum(better))


def test_what_is_known_of_a_model_holds_in_the_whole_tree() -> None:
    """At a node where nothing was tried yet the model is asked that was better elsewhere."""
    algorithm = AbMcts(("good", "bad"))
    stats = told_by_hand([("0", "0.0", 0.5)], algorithm)
    stats[ROOT] = with_extra(stats[ROOT], models={"good": [20, 18.0], "bad": [20, 2.0]})
    deeper = [job for job in drawn(stats, algorithm) if job["node"] == "0.0"]
    assert len(deeper) > 1000
    assert all(job["arm"] == "good" for job in deeper)
