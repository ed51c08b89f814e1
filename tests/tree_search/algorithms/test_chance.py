"""Searches against chance: what they find agrees with what was computed, and one that searches badly is found out."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import NamedTuple

import pytest

from bench import chance
from reflective_agents.tree_search.algorithms.ab_mcts import AbMcts
from reflective_agents.tree_search.algorithms.beam import Beam
from reflective_agents.tree_search.algorithms.best_of_n import BestOfN
from reflective_agents.tree_search.algorithms.depth_first import DepthFirst
from reflective_agents.tree_search.algorithms.mcts import Mcts
from reflective_agents.tree_search.algorithms.rap import Rap
from reflective_agents.tree_search.base import Algorithm
from tests.tree_search.algorithms.broken import Backwards, Deaf, Misled, Shallow
from tests.tree_search.algorithms.locks import Answers, Arms, JudgedLater, Lock, Planned, World, measure

P, DEPTH, M = 0.5, 3, 4
JUDGE_ERROR = 0.2
FIRST, REFINED, SAME = 0.1, 0.5, 0.2


class Case(NamedTuple):
    """A search, where it searches, the computed chance that it finds the solution, and in at most how many jobs.

    `blind` is the chance without a search: of one draw at each step, or of one answer.
    """

    algorithm: Algorithm
    world: Callable[..., World]
    computed: float
    jobs: int = 1000
    blind: float = chance.one_shot(P, DEPTH)


ONE_WAY = partial(Lock, p=P, depth=DEPTH)
TWO_WAYS = partial(ONE_WAY, kinds=2)
ALL_DIFFERENT = partial(ONE_WAY, kinds=None, error=JUDGE_ERROR)
JUDGED_LATER = partial(JudgedLater, p=P, depth=DEPTH, kinds=2)
PLANNED = partial(Planned, p=P, depth=DEPTH, kinds=2)

GUIDED = {
    "mcts, one rollout": Case(Mcts(2, simulate=True, max_rollouts=1), TWO_WAYS, chance.straight(P, 2, DEPTH)),
    "mcts, an expansion a step": Case(Mcts(2, 0.0), ONE_WAY, chance.straight(P, 2, DEPTH), DEPTH),
    "mcts, judged with errors": Case(
        Mcts(3, simulate=True, max_rollouts=1), ALL_DIFFERENT, chance.misjudged(P, 3, DEPTH, JUDGE_ERROR)
    ),
    "mcts, told at the ends": Case(
        Mcts(M, 0.0, simulate=True, max_rollouts=M), partial(Arms, m=M), (M + 1) / (2 * M), blind=M / M**2
    ),
    "beam of one": Case(Beam(2, 1), TWO_WAYS, chance.straight(P, 2, DEPTH)),
    "beam of three": Case(Beam(3, 3), TWO_WAYS, chance.in_beam(P, 3, 2, 3, DEPTH)),
    "beam, judged with errors": Case(Beam(3, 1), ALL_DIFFERENT, chance.misjudged(P, 3, DEPTH, JUDGE_ERROR)),
    "depth first": Case(DepthFirst(2, 0.5, None), JUDGED_LATER, chance.everywhere(P, 2, 2, DEPTH)),
    "rap, one rollout": Case(Rap(2, max_rollouts=1), PLANNED, chance.straight(P, 2, DEPTH)),
    "ab_mcts": Case(
        AbMcts(), partial(Answers, first=FIRST, refined=REFINED), chance.adaptive(FIRST, REFINED, 4), 4, FIRST
    ),
}
"""Searches that have to make use of what they are told."""

UNGUIDED = {
    "best of n": Case(BestOfN(5), TWO_WAYS, chance.best_of(chance.one_shot(P, DEPTH), 5)),
    "mcts to the end": Case(Mcts(2), TWO_WAYS, chance.everywhere(P, 2, 2, DEPTH)),
    "mcts with simulations to the end": Case(Mcts(3, simulate=True), ONE_WAY, chance.everywhere(P, 3, 1, DEPTH)),
    "mcts, told nothing": Case(
        Mcts(M, simulate=True, max_rollouts=M), partial(Arms, m=M, warm=False), M / M**2, blind=1 / M**2
    ),
    "rap to the end": Case(Rap(2, max_rollouts=None), PLANNED, chance.everywhere(P, 2, 2, DEPTH)),
    "ab_mcts, all answers alike": Case(
        AbMcts(), partial(Answers, first=SAME, refined=SAME), chance.best_of(SAME, 4), 4, SAME
    ),
}
"""Searches that find as much in whatever order they look."""


@pytest.mark.matrix
@pytest.mark.parametrize("name", GUIDED | UNGUIDED)
def test_a_search_finds_what_was_computed_and_more_than_chance(name: str) -> None:
    case = (GUIDED | UNGUIDED)[name]
    measured = measure(case.algorithm, case.world, jobs=case.jobs)
    assert measured.agrees_with(case.computed), (measured, measured.interval, case.computed)
    assert measured.beats(case.blind)


TOLD = GUIDED["mcts, told at the ends"]
BROKEN = {f"misled {name}": case._replace(algorithm=Misled(case.algorithm)) for name, case in GUIDED.items()} | {
    "mcts backwards": TOLD._replace(algorithm=Backwards(M, 0.0, simulate=True, max_rollouts=M)),
    "deaf mcts": TOLD._replace(algorithm=Deaf(M, 0.0, simulate=True, max_rollouts=M)),
    "shallow ab_mcts": GUIDED["ab_mcts"]._replace(algorithm=Shallow()),
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", BROKEN)
def test_a_search_that_is_worse_than_it_should_be_is_found_out(name: str) -> None:
    case = BROKEN[name]
    measured = measure(case.algorithm, case.world, runs=200, jobs=case.jobs)
    assert measured.interval[1] < case.computed, (measured, measured.interval, case.computed)


@pytest.mark.parametrize(("n", "shares"), [(1, ["1/2"]), (3, ["1/3", "1", "0"]), (4, ["1/5", "3/4"])])
def test_the_chance_of_any_of_several_draws_is_that_of_all_draws_counted_out(n: int, shares: list[str]) -> None:
    p, chances = Fraction(2, 5), [Fraction(share) for share in shares]
    draws = [*enumerate([p / len(chances)] * len(chances)), (None, 1 - p)]
    failed = Fraction(0)
    for drawn in product(draws, repeat=n):
        fails = Fraction(1)
        for _, share in drawn:
            fails *= share
        for option in {option for option, _ in drawn if option is not None}:
            fails *= 1 - chances[option]
        failed += fails
    assert chance.any_of([float(each) for each in chances], float(p), n) == pytest.approx(float(1 - failed))


def test_the_chances_agree_with_each_other_where_they_are_the_same() -> None:
    assert chance.in_beam(P, 3, 2, 1, DEPTH) == pytest.approx(chance.straight(P, 3, DEPTH))
    assert chance.misjudged(P, 3, DEPTH, 0.0) == pytest.approx(chance.straight(P, 3, DEPTH))
    assert chance.everywhere(P, 2, 3, 1) == pytest.approx(chance.best_of(P, 2))
    assert sum(chance.kinds_drawn(P, 3, 2)) == pytest.approx(1)
    assert chance.adaptive(0.2, 0.2, 4) == pytest.approx(chance.best_of(0.2, 4))
    assert chance.highest(1, 1, 1) == pytest.approx([1 / 3] * 3)
    assert sum(chance.highest(0, 1, 3)) == pytest.approx(1)
    assert chance.highest(0, 1)[0] > chance.highest(0, 0)[0] > chance.highest(1, 0)[0]
