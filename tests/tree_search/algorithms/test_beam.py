"""Breadth-first search: level by level, whatever comes first, and the same beams as a plain program finds."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.state.tree import Stats, TreeNode, merge_stats
from reflective_agents.tree_search.algorithms.beam import Beam
from reflective_agents.tree_search.base import START, Child, Job, ask, is_pruned, leaf, tell, with_extra
from reflective_agents.tree_search.tree_paths import ROOT
from tests.tree_search.algorithms.growing import Comes, Search, children_of, judged_later, node

SEEDS = st.integers(0, 10**6)
DEPTH = 4
BEAMS = st.builds(Beam, st.integers(1, 4), st.integers(1, 4), st.booleans())


def world(beam: Beam) -> Comes:
    """What comes of jobs: children with their grades, or without where they are compared; some in the same state."""

    def comes(seed: int, job: Job, depth: int) -> list[Child]:
        children = (judged_later if beam.compares else children_of)(seed, job, depth)
        return [child._replace(key=_state(seed, child.node["id"])) for child in children]

    return comes


def _state(seed: int, node_id: str) -> str:
    number = random.Random(f"state {seed} {node_id}").randrange(8)
    return f"state {number}" if number < 4 else ""


def plain(beam: Beam, seed: int, depth: int = DEPTH) -> tuple[list[str], list[str]]:
    """The nodes that are expanded, in order, and the last beam, by the program of the paper."""
    comes, level, expanded = world(beam), [ROOT], list[str]()
    while True:
        expanded += level
        found = [
            child
            for parent in level
            for child in comes(seed, Job(node=parent, kind="expand", first=0, width=beam.width), depth)
        ]
        if beam.compares:
            ids = [child.node["id"] for child in found]
            grades = comes(seed, Job(node=ROOT, kind="judge", first=0, width=len(ids), nodes=ids), depth)
            states = {child.node["id"]: child.key for child in found}
            graded = [child._replace(key=states[child.node["id"]]) for child in grades]
        else:
            graded = [child for child in found if child.node["score"] is not None]
        best: list[Child] = []
        for child in sorted(graded, key=lambda child: -(child.node["score"] or 0.0)):
            if len(best) < beam.beam and not (child.key and child.key in [other.key for other in best]):
                best.append(child)
        level = [child.node["id"] for child in best if child.expandable]
        if not level:
            return expanded, [child.node["id"] for child in best]


def expanded(search: Search) -> list[str | None]:
    return [job["node"] for job, _ in search.done if job["kind"] == "expand"]


@given(BEAMS, SEEDS)
def test_the_beams_are_those_of_the_plain_program(beam: Beam, seed: int) -> None:
    search = Search(beam, seed, depth=DEPTH, comes=world(beam))
    search.run(1000)
    assert (expanded(search), search.stats[ROOT]["own"]["frontier"]) == plain(beam, seed)
    assert search.ask() == []


@given(BEAMS, SEEDS)
def test_no_order_of_telling_changes_the_tree(beam: Beam, seed: int) -> None:
    there, here = Search(beam, seed, depth=DEPTH, comes=world(beam)), Search(beam, seed, depth=DEPTH, comes=world(beam))
    there.run(1000)
    while not here.stats[ROOT]["closed"] or here.ask():
        here.interleave(20)
    assert here.tree == there.tree
    assert _counted(here.stats) == _counted(there.stats)


def _counted(stats: Stats) -> Stats:
    """Statistics without how many jobs had begun: those that were given up had begun as well."""
    return {key: with_extra(stat, begun=None) for key, stat in stats.items()}


@given(BEAMS, SEEDS)
def test_nothing_is_left_in_flight_and_telling_twice_does_no_harm(beam: Beam, seed: int) -> None:
    search = Search(beam, seed, depth=DEPTH, comes=world(beam))
    search.interleave(60)
    assert not any("virtual" in stat or "flight" in stat for stat in search.stats.values())
    assert all(tell(beam, search.stats, job, children) == {} for job, children in search.done)


@given(BEAMS, SEEDS)
def test_pruned_nodes_are_closed_and_never_expanded(beam: Beam, seed: int) -> None:
    search = Search(beam, seed, depth=DEPTH, comes=world(beam))
    search.run(1000)
    for node_id, stat in search.stats.items():
        assert not is_pruned(stat) or (stat["closed"] and node_id not in expanded(search))
        assert "key" not in stat
    widths = [sum(key.count(".") == level for key in map(str, expanded(search))) for level in range(5)]
    assert max(widths) <= beam.beam


@given(BEAMS, SEEDS)
def test_each_grade_is_seen_by_all_nodes_above_it(beam: Beam, seed: int) -> None:
    search = Search(beam, seed, depth=DEPTH, comes=world(beam))
    search.run(1000)
    for node_id, stat in search.stats.items():
        below = [other for other in search.stats if other == node_id or other.startswith(f"{node_id}.")]
        scores = [search.tree[other]["score"] for other in below]
        assert stat["visits"] == sum(score is not None for score in scores)
        assert stat["total"] == sum(score or 0.0 for score in scores)


def test_all_nodes_of_a_level_may_be_in_flight_and_are_judged_when_the_last_is_there() -> None:
    search = Search(Beam(2, beam=3, compares=True), comes=_full)
    search.run(2)
    level = search.ask(10)
    assert [job["node"] for job in level] == ["0.0", "0.1"]
    search.tell(level[1])
    assert search.ask(10) == []
    search.tell(level[0])
    (judging,) = search.ask(10)
    assert judging["nodes"] == ["0.0.0", "0.0.1", "0.1.0", "0.1.1"]
    assert judging["width"] == 4
    assert search.ask(10) == []


def _full(seed: int, job: Job, depth: int) -> list[Child]:
    """As many children as are asked for."""
    if not job["node"]:
        return [Child(node(ROOT, None, kind="root"), True)]
    ids = job.get("nodes", [f"{job['node']}.{number}" for number in range(job["width"])])
    return [Child(node(node_id, 0.5 if job["kind"] == "judge" else None), True) for node_id in ids]


def test_equal_scores_leave_the_order_as_it_is() -> None:
    beam = Beam(3, beam=2)
    stats = tell(beam, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    scores = {"0.0": 0.1, "0.1": 0.5, "0.2": 0.5}
    (job,), changes = ask(beam, stats)
    stats = merge_stats(stats, [changes])
    stats = merge_stats(
        stats, [tell(beam, stats, job, [Child(node(key, score), True) for key, score in scores.items()])]
    )
    assert stats[ROOT]["own"]["frontier"] == ["0.1", "0.2"]
    assert stats["0.0"] == with_extra(leaf(Child(node("0.0", 0.1), False)), pruned=True)


@pytest.mark.parametrize("graded", [True, False])
def test_a_level_without_children_or_grades_ends_the_search(graded: bool) -> None:
    def comes(seed: int, job: Job, depth: int) -> list[Child]:
        if not job["node"] or (job["kind"] == "expand" and not graded):
            return _full(seed, job, depth)
        return []

    search = Search(Beam(2, compares=not graded), comes=comes)
    search.run(10)
    assert search.stats[ROOT]["own"]["frontier"] == []
    assert search.stats[ROOT]["closed"]
    assert search.ask() == []


def test_answers_are_ordered_by_score_and_then_as_the_beam_was() -> None:
    scores = {"0": None, "0.0": 0.1, "0.1": 0.9, "0.0.0": 0.5, "0.1.0": 0.5, "0.1.1": 0.5, "0.1.2": 0.6, "0.1.3": None}
    tree = {key: node(key, score) for key, score in scores.items()}
    answers = [tree[key] for key in ("0.0.0", "0.1.3", "0.1.1", "0.1.0", "0.1.2")]
    ordered = sorted(answers, key=lambda answer: Beam().rank(tree, answer))
    assert [answer["id"] for answer in ordered] == ["0.1.2", "0.1.0", "0.1.1", "0.0.0", "0.1.3"]
    solved: TreeNode = {**tree["0.0.0"], "solved": True}
    assert Beam().rank(tree, solved) < Beam().rank(tree, tree["0.1.2"])
