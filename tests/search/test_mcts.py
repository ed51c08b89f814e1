"""The algorithm of the tree search, without any model or graph."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.mcts import ROOT, best_answer, children, exact, parent_of, path, select, tell, uct, value
from state.tree import NodeStats, Stats, Tree, TreeNode, merge_nodes, merge_stats

Growth = list[list[tuple[float, bool]]]
"""For each expansion: the score of each child, and whether it may be expanded."""

GROWTHS = st.lists(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=6), min_size=1, max_size=25)
WEIGHTS = st.floats(0, 10)


def node(node_id: str, score: float | None = 0.5, **changes: Any) -> TreeNode:
    made = TreeNode(
        id=node_id,
        parent_id=parent_of(node_id),
        depth=node_id.count("."),
        kind="answer",
        messages=[],
        critique="",
        score=score if score is None else exact(score),
        solved=False,
    )
    return {**made, **changes}  # type: ignore[typeddict-item]


def grow(growth: Growth, weight: float) -> tuple[Tree, Stats, list[str]]:
    """Run a whole search; the leaves it selected are the third result."""
    root = node(ROOT)
    tree, stats, leaves = {ROOT: root}, tell({}, None, [(root, True)]), []
    for scores in growth:
        leaf = select(stats, weight)
        if leaf is None:
            break
        leaves.append(leaf)
        new = [(node(f"{leaf}.{i}", score), expandable) for i, (score, expandable) in enumerate(scores)]
        tree = merge_nodes(tree, [{child["id"]: child for child, _ in new}])
        stats = merge_stats(stats, [tell(stats, leaf, new)])
    return tree, stats, leaves


def test_uct_adds_the_bonus_to_the_mean_without_dividing_it_again() -> None:
    stats = NodeStats(visits=4, total=3.6, children=0, closed=False)
    assert value(stats) == pytest.approx(0.9)
    assert uct(stats, 6, 1.0) == pytest.approx(0.9 + math.sqrt(math.log(6) / 4), abs=1e-9)
    assert uct(stats, 6, 1.0) == pytest.approx(1.569, abs=1e-3)
    assert uct(stats, 6, 0.0) == pytest.approx(0.9)


def test_selection_goes_level_by_level() -> None:
    stats = {
        "0": NodeStats(visits=5, total=2.5, children=2, closed=False),
        "0.0": NodeStats(visits=1, total=0.1, children=0, closed=False),
        "0.1": NodeStats(visits=3, total=2.4, children=2, closed=False),
        "0.1.0": NodeStats(visits=1, total=0.9, children=0, closed=False),
        "0.1.1": NodeStats(visits=1, total=1.0, children=0, closed=True),
    }
    assert select(stats, 0.0) == "0.1.0"
    assert select(stats, 100.0) == "0.0"


def test_nothing_to_select() -> None:
    assert select({}, 1.0) is None
    assert select({"0": NodeStats(visits=1, total=1.0, children=0, closed=True)}, 1.0) is None


def test_an_expansion_without_children_closes_the_leaf() -> None:
    stats = tell({}, None, [(node(ROOT), True)])
    assert tell(stats, ROOT, [])[ROOT]["closed"]


def test_an_unjudged_child_counts_no_visit_and_is_not_expanded() -> None:
    _, stats, _ = grow([[(0.5, True)]], 1.0)
    stats = merge_stats(stats, [tell(stats, "0.0", [(node("0.0.0", None), True)])])
    assert stats["0.0.0"] == {"visits": 0, "total": 0.0, "children": 0, "closed": True}
    assert stats["0"]["visits"] == 2
    assert select(stats, 1.0) is None


@given(GROWTHS, WEIGHTS)
def test_visits_and_values_are_conserved(growth: Growth, weight: float) -> None:
    tree, stats, _ = grow(growth, weight)
    for node_id, seen in stats.items():
        kids = [stats[child] for child in children(stats, node_id)]
        assert seen["visits"] == 1 + sum(kid["visits"] for kid in kids)
        assert seen["total"] == tree[node_id]["score"] + sum(kid["total"] for kid in kids)  # type: ignore[operator]
        assert 0 <= value(seen) <= 1


@given(GROWTHS, WEIGHTS)
def test_every_node_is_reachable(growth: Growth, weight: float) -> None:
    tree, stats, _ = grow(growth, weight)
    reached, frontier = set(), [ROOT]
    while frontier:
        reached.add(frontier[-1])
        frontier += children(stats, frontier.pop())
    assert reached == set(tree) == set(stats)
    assert all(path(tree, node_id)[0]["id"] == ROOT for node_id in tree)


@given(GROWTHS, WEIGHTS)
def test_what_may_not_be_expanded_never_is_and_no_leaf_twice(growth: Growth, weight: float) -> None:
    _, stats, leaves = grow(growth, weight)
    assert len(set(leaves)) == len(leaves)
    for leaf, scores in zip(leaves, growth, strict=False):
        for i, (_, expandable) in enumerate(scores):
            assert expandable or f"{leaf}.{i}" not in leaves
    finished = all(entry["closed"] for entry in stats.values() if not entry["children"])
    assert (select(stats, weight) is None) == finished


@given(GROWTHS, WEIGHTS)
def test_the_same_events_give_the_same_tree(growth: Growth, weight: float) -> None:
    assert grow(growth, weight) == grow(growth, weight)


@given(GROWTHS, WEIGHTS, st.randoms())
def test_the_order_of_children_in_a_batch_does_not_matter(growth: Growth, weight: float, rng: random.Random) -> None:
    _, stats, leaves = grow(growth, weight)
    tree, again = {ROOT: node(ROOT)}, tell({}, None, [(node(ROOT), True)])
    for leaf, scores in zip(leaves, growth, strict=False):
        new = [(node(f"{leaf}.{i}", score), expandable) for i, (score, expandable) in enumerate(scores)]
        rng.shuffle(new)
        again = merge_stats(again, [tell(again, leaf, new)])
        tree = merge_nodes(tree, [{child["id"]: child} for child, _ in new])
    assert again == stats


@given(GROWTHS, WEIGHTS)
def test_the_order_of_expansions_does_not_matter_where_they_are_independent(growth: Growth, weight: float) -> None:
    """Every order in which parents come before their children gives the same statistics."""
    _, stats, leaves = grow(growth, weight)
    told = {
        leaf: [(node(f"{leaf}.{i}", score), expandable) for i, (score, expandable) in enumerate(scores)]
        for leaf, scores in zip(leaves, growth, strict=False)
    }
    again = tell({}, None, [(node(ROOT), True)])
    for leaf in sorted(leaves, key=lambda leaf: (leaf.count("."), leaf), reverse=False):
        again = merge_stats(again, [tell(again, leaf, told[leaf])])
    assert again == stats


@given(GROWTHS, WEIGHTS)
def test_telling_twice_does_no_harm(growth: Growth, weight: float) -> None:
    _, stats, leaves = grow(growth, weight)
    for leaf in leaves:
        kids = [(node(child), True) for child in children(stats, leaf)]
        assert tell(stats, leaf, kids) == {}


@given(GROWTHS, WEIGHTS)
def test_reducers_do_not_care_how_writes_are_batched(growth: Growth, weight: float) -> None:
    tree, stats, _ = grow(growth, weight)
    nodes, entries = [{key: value} for key, value in tree.items()], [{key: value} for key, value in stats.items()]
    half = len(nodes) // 2
    assert merge_nodes(merge_nodes({}, nodes[:half]), nodes[half:]) == merge_nodes({}, nodes)
    assert merge_stats(merge_stats({}, entries[:half]), entries[half:]) == merge_stats({}, entries)


@given(st.permutations([("0", 0.2), ("0.0", 0.9), ("0.1", 0.9), ("0.0.1", 0.9), ("0.0.0", None)]))
def test_the_best_answer_is_the_shallowest_first_of_the_best(entries: list[tuple[str, float | None]]) -> None:
    tree = {node_id: node(node_id, score) for node_id, score in entries}
    assert best_answer(tree) == tree["0.0"]


def test_a_solved_answer_wins_even_at_score_0_and_a_search_never() -> None:
    tree = {
        "0": node("0", 1.0, kind="action"),
        "0.0": node("0.0", 0.9),
        "0.1": node("0.1", 0.0, solved=True),
    }
    best = best_answer(tree)
    assert best is not None
    assert best["id"] == "0.1"
    assert best_answer({"0": tree["0"]}) is None


def test_an_unjudged_answer_is_better_than_none() -> None:
    assert best_answer({"0": node("0", None)}) == node("0", None)
