"""MCTS that widens: nodes are expanded again once no leaf is left."""

from reflective_agents.state.tree import Stats, TreeNode, merge_stats
from reflective_agents.tree_search.algorithms.widening import Widening
from reflective_agents.tree_search.base import START, Child, Job, ask, tell
from reflective_agents.tree_search.tree_paths import ROOT, depth_of

ALGORITHM = Widening(width=2, widest=2)


def made(node_id: str, score: float | None, *, expandable: bool = False) -> Child:
    node = TreeNode(
        id=node_id,
        parent_id=node_id.rpartition(".")[0] or None,
        depth=depth_of(node_id),
        kind="action" if "." in node_id else "root",
        messages=[],
        critique="",
        score=score,
        solved=False,
    )
    return Child(node, expandable)


def after(stats: Stats, job: Job, *children: Child) -> Stats:
    return merge_stats(stats, [tell(ALGORITHM, stats, job, children)])


def begun() -> tuple[Stats, Job]:
    stats = after({}, START, made(ROOT, None, expandable=True))
    [job], changed = ask(ALGORITHM, stats)
    return merge_stats(stats, [changed]), job


def test_a_node_without_open_leaves_is_expanded_again() -> None:
    stats, job = begun()
    stats = after(stats, job, made("0.0", 0.1), made("0.1", 0.2))
    assert stats[ROOT]["closed"]
    [again], _ = ask(ALGORITHM, stats)
    assert (again["node"], again["first"]) == (ROOT, 2)


def test_what_comes_of_it_joins_the_children_and_opens_the_node() -> None:
    stats, job = begun()
    stats = after(stats, job, made("0.0", 0.25), made("0.1", 0.5))
    [again], changed = ask(ALGORITHM, stats)
    stats = after(merge_stats(stats, [changed]), again, made("0.2", 0.75, expandable=True))
    assert (stats[ROOT]["children"], stats[ROOT]["visits"], stats[ROOT]["total"]) == (3, 3, 1.5)
    assert not stats[ROOT]["closed"]
    [below], _ = ask(ALGORITHM, stats)
    assert below["node"] == "0.2"


def test_no_node_is_expanded_more_often_than_allowed() -> None:
    stats, job = begun()
    stats = after(stats, job, made("0.0", 0.1))
    [again], changed = ask(ALGORITHM, stats)
    stats = after(merge_stats(stats, [changed]), again)
    assert ask(ALGORITHM, stats) == ([], {})


def test_nothing_is_widened_while_a_job_is_in_flight() -> None:
    stats, _ = begun()
    assert ask(ALGORITHM, stats) == ([], {})
