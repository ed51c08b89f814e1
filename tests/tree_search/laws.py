"""What holds for every algorithm, whatever it searches: shared by the tests of the algorithms."""

import copy
import random

from reflective_agents.state.tree import merge_stats
from reflective_agents.tree_search.base import ask, tell, withdraw
from tests.tree_search.algorithms.growing import Search


def any_order_gives_the_same(there: Search, here: Search, slots: int, jobs: int, chance: random.Random) -> None:
    """Two equal searches stay equal where the results of one come in another order; none is asked for twice."""
    for search in (there, here):
        search.run(jobs)
        sent = search.ask(slots)
        if search is here:
            chance.shuffle(sent)
        for job in sent:
            search.tell(job)
    assert (here.tree, here.stats) == (there.tree, there.stats)


def telling_twice_changes_nothing(search: Search) -> None:
    """What was told once may be told again, and nothing is in flight once all was told."""
    search.interleave(40)
    assert not any(stat.get("virtual") or stat.get("flight") for stat in search.stats.values())
    for job, kids in search.done:
        assert tell(search.algorithm, search.stats, job, kids) == {}


def nothing_given_is_changed(search: Search) -> None:
    """Asking, telling and taking back return changes, and leave what they were given as it was."""
    search.interleave(20)
    search.ask(2)
    given = copy.deepcopy(search.stats)
    jobs, changes = ask(search.algorithm, search.stats, 3)
    with_jobs = merge_stats(search.stats, [changes])
    given_with = copy.deepcopy(with_jobs)
    for job in jobs:
        kids = search.comes(search.seed, job, search.depth)
        given_kids = copy.deepcopy(kids)
        tell(search.algorithm, with_jobs, job, kids)
        withdraw(with_jobs, job)
        assert kids == given_kids
    assert search.stats == given
    assert with_jobs == given_with
