"""Depth-first search: the same visits as a plain recursion, whatever is pruned and wherever it stops."""

from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.state.tree import Stats
from reflective_agents.tree_search.algorithms.depth_first import DepthFirst
from reflective_agents.tree_search.base import Job, is_pruned, tell, with_extra
from reflective_agents.tree_search.tree_paths import ROOT
from tests.tree_search.algorithms.growing import Search, judged_later, node

SEEDS = st.integers(0, 10**6)
DEPTH = 3
WHOLE = st.builds(DepthFirst, st.integers(1, 3), st.floats(0, 0.6), st.none())
BOUNDED = st.builds(DepthFirst, st.integers(1, 3), st.floats(0, 0.6), st.integers(1, 30))


def plain(dfs: DepthFirst, seed: int, depth: int = DEPTH) -> list[str]:
    """The nodes in the order of their visits, by the recursive program of the paper."""
    visited: list[str] = []

    def visit(key: str) -> None:
        for child in judged_later(seed, Job(node=key, kind="expand", first=0, width=dfs.width), depth):
            if dfs.max_states is not None and len(scores) >= dfs.max_states:
                return
            node_id = child.node["id"]
            visited.append(node_id)
            graded = judged_later(seed, Job(node=node_id, kind="judge", first=0, width=1, nodes=[node_id]), depth)
            scores.extend(graded)
            if graded and graded[0].expandable and (graded[0].node["score"] or 0.0) >= dfs.prune_below:
                visit(node_id)

    scores: list[object] = []
    visit(ROOT)
    return visited


def visits(search: Search) -> list[str | None]:
    return [job["node"] for job, _ in search.done if job["kind"] == "judge"]


@given(WHOLE | BOUNDED, SEEDS)
def test_the_visits_are_those_of_the_plain_recursion(dfs: DepthFirst, seed: int) -> None:
    search = Search(dfs, seed, depth=DEPTH, comes=judged_later)
    search.run(2000)
    assert visits(search) == plain(dfs, seed)
    assert search.ask() == []


@given(WHOLE, SEEDS)
def test_no_order_of_telling_changes_what_is_seen_in_the_end(dfs: DepthFirst, seed: int) -> None:
    there, here = Search(dfs, seed, depth=DEPTH, comes=judged_later), Search(dfs, seed, depth=DEPTH, comes=judged_later)
    there.run(2000)
    while not here.stats[ROOT]["closed"]:
        here.interleave(40)
    assert _counted(here.stats) == _counted(there.stats)


def _counted(stats: Stats) -> Stats:
    return {key: with_extra(stat, begun=None) for key, stat in stats.items()}


@given(WHOLE | BOUNDED, SEEDS)
def test_nothing_is_left_in_flight_and_telling_twice_does_no_harm(dfs: DepthFirst, seed: int) -> None:
    search = Search(dfs, seed, depth=DEPTH, comes=judged_later)
    search.interleave(60)
    assert not any("virtual" in stat or "flight" in stat for stat in search.stats.values())
    assert all(tell(dfs, search.stats, job, children) == {} for job, children in search.done)


@given(BOUNDED, SEEDS, st.integers(1, 8))
def test_no_more_states_are_visited_than_allowed(dfs: DepthFirst, seed: int, slots: int) -> None:
    search = Search(dfs, seed, depth=DEPTH, comes=judged_later)
    search.run(2000, slots)
    seen = [key for key, stat in search.stats.items() if key != ROOT and search.tree[key]["score"] is not None]
    assert dfs.max_states is not None
    assert search.stats[ROOT]["visits"] == len(seen) <= dfs.max_states
    assert search.stats[ROOT]["closed"] or len(seen) == dfs.max_states


@given(WHOLE, SEEDS, st.integers(2, 8))
def test_jobs_in_flight_are_in_different_places(dfs: DepthFirst, seed: int, slots: int) -> None:
    search = Search(dfs, seed, depth=DEPTH, comes=judged_later)
    search.run(6)
    places = [job["node"] for job in search.ask(slots)]
    assert len(set(places)) == len(places) <= slots


@given(WHOLE, SEEDS)
def test_what_is_pruned_is_not_gone_on_with(dfs: DepthFirst, seed: int) -> None:
    search = Search(dfs, seed, depth=DEPTH, comes=judged_later)
    search.run(2000)
    for key, stat in search.stats.items():
        score = search.tree[key]["score"]
        assert is_pruned(stat) == (score is not None and score < dfs.prune_below)
        assert not is_pruned(stat) or not stat["children"]


def test_the_deepest_visited_answer_is_the_best_unless_one_is_solved() -> None:
    tree = {
        "0": node("0", None, kind="root"),
        "0.0": node("0.0", 0.9),
        "0.0.0": node("0.0.0", 0.2),
        "0.0.1": node("0.0.1", 0.3),
        "0.0.2": node("0.0.2", 0.3),
        "0.0.1.0": node("0.0.1.0", None),
    }
    ordered = sorted(tree, key=lambda key: DepthFirst().rank(tree, tree[key]))
    assert ordered == ["0.0.1", "0.0.2", "0.0.0", "0.0", "0.0.1.0", "0"]
    assert DepthFirst().rank(tree, {**tree["0.0"], "solved": True}) < DepthFirst().rank(tree, tree["0.0.1"])
