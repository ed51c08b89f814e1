"""What searches find by computation, where a policy takes the right step with a known chance; nothing is simulated.

In every state a draw is right with chance p, and then one of the `kinds` of right steps, each as likely as the others.
Draws are independent, and from a wrong state no step leads back to a right one. What was measured is held against it by
an interval of confidence.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product
from math import comb, prod
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from scipy.special import betainc, betaincinv


class Measured(NamedTuple):
    """How many of how many runs have succeeded."""

    found: int
    runs: int

    @property
    def interval(self) -> tuple[float, float]:
        """The Clopper-Pearson interval: in at least 99 of 100 measurements it holds the true chance."""
        found, missed = self.found, self.runs - self.found
        low = float(betaincinv(found, missed + 1, 0.005)) if found else 0.0
        return low, float(betaincinv(found + 1, missed, 0.995)) if missed else 1.0

    def agrees_with(self, computed: float) -> bool:
        """Tell whether what was computed lies in the interval."""
        low, high = self.interval
        return low <= computed <= high

    def beats(self, chance: float) -> bool:
        """Tell whether all of the interval is above a chance."""
        return self.interval[0] > chance


def one_shot(p: float, depth: int) -> float:
    """Calculate the chance with one draw at each step."""
    return p**depth


def best_of(chance: float, n: int) -> float:
    """Calculate the chance that one of n independent attempts succeeds."""
    return 1 - (1 - chance) ** n


def straight(p: float, n: int, depth: int) -> float:
    """Calculate the chance with n draws at each step, continuing from a right one if there is any; never back."""
    return best_of(p, n) ** depth


def misjudged(p: float, n: int, depth: int, error: float) -> float:
    """Calculate the same chance as `straight` where all draws differ, and each is misjudged with chance `error`.

    The search continues from a draw that seems right, or from any if none does. At the end one right draw is enough.
    """
    seems = p * (1 - error) + (1 - p) * error
    none_seems = (1 - seems) ** n
    taken = (1 - none_seems) * p * (1 - error) / seems + none_seems * p * error / (1 - seems)
    return float(taken ** (depth - 1) * best_of(p, n))


def any_of(chances: Sequence[float], p: float, n: int) -> float:
    """Calculate the chance with n draws, all followed up: each right kind leads to the end with a chance of its own.

    If j kinds would lead there, a draw is one of them with chance j p / k.
    """
    leading = [1.0]
    for chance in chances:
        pairs = zip([*leading, 0.0], [0.0, *leading], strict=True)
        leading = [less * (1 - chance) + more * chance for less, more in pairs]
    return 1 - sum(share * (1 - j * p / len(chances)) ** n for j, share in enumerate(leading))


def everywhere(p: float, n: int, kinds: int, depth: int) -> float:
    """Calculate the chance with n draws in each state that was reached, until nothing is left."""
    chance = 1.0
    for _ in range(depth):
        chance = any_of([chance] * kinds, p, n)
    return chance


def in_beam(p: float, n: int, kinds: int, beam: int, depth: int) -> float:
    """Calculate the chance with n draws in each of `beam` states per level, keeping at most `beam` right children."""
    drawn, right = kinds_drawn(p, n, kinds), {1: 1.0}
    for _ in range(depth):
        following: defaultdict[int, float] = defaultdict(float)
        for parents, share in right.items():
            for counts in product(range(len(drawn)), repeat=parents):
                following[min(sum(counts), beam)] += share * prod(drawn[count] for count in counts)
        right = dict(following)
    return 1 - right[0]


def kinds_drawn(p: float, n: int, kinds: int) -> list[float]:
    """Calculate how likely n draws are to be right in 0, 1, 2, ... different ways."""
    spread = [1.0] + [0.0] * kinds
    fresh = [p * (kinds - known) / kinds for known in range(kinds + 1)]
    for _ in range(n):
        come = [0.0, *(share * new for share, new in zip(spread, fresh, strict=True))]
        spread = [share * (1 - fresh[known]) + come[known] for known, share in enumerate(spread)]
    return spread


Shape: TypeAlias = tuple["Shape", ...]
"""A tree of answers: what was made below each place."""


def adaptive(first: float, refined: float, answers: int, shape: Shape = ()) -> float:
    """Calculate the chance of AB-MCTS with `answers` answers, where wrong ones are scored 0.

    Answers at the root are right with chance `first`, those below another answer with chance `refined`.
    """
    if not answers:
        return 0.0
    found = 0.0
    for share, deeper, grown in _grown(shape):
        chance = refined if deeper else first
        found += share * (chance + (1 - chance) * adaptive(first, refined, answers - 1, grown))
    return found


def _grown(shape: Shape) -> Iterator[tuple[float, bool, Shape]]:
    """Yield each place of the next answer: how likely it is, whether it is below another answer, and the grown tree."""
    below = [_size(child) for child in shape]
    wider = highest(len(shape), sum(below) - len(shape))[0] if shape else 1.0
    yield wider, False, (*shape, ())
    into = highest(*below)
    for i, child in enumerate(shape):
        for share, _, grown in _grown(child):
            yield (1 - wider) * into[i] * share, True, (*shape[:i], grown, *shape[i + 1 :])


def _size(shape: Shape) -> int:
    return 1 + sum(map(_size, shape))


@cache
def highest(*failures: int) -> list[float]:
    """Calculate how likely each of several draws from Beta(1/2, 1/2 + failures) is to be the highest."""

    def beaten(level: float, own: int) -> float:
        drawn = betaincinv(0.5, 0.5 + failures[own], level)
        return prod(float(betainc(0.5, 0.5 + other, drawn)) for i, other in enumerate(failures) if i != own)

    from scipy.integrate import quad  # takes a second to load

    return [float(quad(beaten, 0, 1, args=(own,))[0]) for own in range(len(failures))]


def chosen_by_pairs(p: float, judge: float, n: int) -> float:
    """Calculate the chance that the best of n answers is right, after each was compared with each in both orders.

    An answer is right with chance p; all differ. Of a right and a wrong one each verdict is right with chance `judge`;
    between others it is a coin. Two that differ are a draw. The answer that has won most is taken, of equals the first.
    """
    pairs = sorted(combinations(range(n), 2), key=itemgetter(1))
    found = 0.0
    for answers in product((True, False), repeat=n):
        likely = prod(p if right else 1 - p for right in answers)
        found += likely * _wins(answers, pairs, judge)
    return found


def _wins(answers: Sequence[bool], pairs: Sequence[tuple[int, int]], judge: float) -> float:
    """Calculate the chance that a right answer wins most, where it is known which are right."""
    found = 0.0
    for shares in product((1.0, 0.5, 0.0), repeat=len(pairs)):
        won, chance = [0.0] * len(answers), 1.0
        for (first, second), share in zip(pairs, shares, strict=True):
            better = 0.5
            if answers[first] != answers[second]:
                better = judge if answers[first] else 1 - judge
            chance *= {1.0: better**2, 0.5: 2 * better * (1 - better), 0.0: (1 - better) ** 2}[share]
            won[first] += share
            won[second] += 1 - share
        found += chance * answers[won.index(max(won))]
    return found


def merged(p: float, merge: Sequence[float], n: int, rounds: int) -> float:
    """Calculate the chance that a vote is right after so many rounds of merging, the first of which samples.

    Args:
        p: The chance that a sample is right. All wrong ones are alike.
        merge: The chance that a merged answer is right, by how many of its group are: K + 1 chances.
        n: Answers of a round, N.
        rounds: Rounds, T.
    """
    k, right = len(merge) - 1, _binomial(n, p)
    for _ in range(rounds - 1):
        after = [0.0] * (n + 1)
        for count, chance in enumerate(right):
            kept = 0.0
            for r, merges in enumerate(merge):  # of the group are right
                drawn = comb(count, r) * comb(n - count, k - r) / comb(n, k)
                kept += drawn * merges
            for number, share in enumerate(_binomial(n, kept)):
                after[number] += chance * share
        right = after
    won = 0.0
    for count, chance in enumerate(right):
        if 2 * count > n:
            won += chance
        elif 2 * count == n:
            won += 0.5 * chance
    return won


def _binomial(n: int, p: float) -> list[float]:
    return [comb(n, count) * p**count * (1 - p) ** (n - count) for count in range(n + 1)]
