"""Choosing among answers by pairs: a judge compares two at a time, and Bradley-Terry scores say which is best."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from pydantic import BaseModel, Field

from reflective_agents.nodes.asking.bradley_terry import Result, next_pairs, scores
from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import around
from reflective_agents.nodes.memo import at_once, each_to_its_end
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import pairs as prompts
from reflective_agents.state.context import Context, Model
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.outcome import pluralize
from reflective_agents.state.schemas import one_of

ORDERS = 2
"""Calls of a comparison: one for each order of the two."""
Compare = Callable[[int, int], Awaitable[float]]
"""Returns the share of a comparison that the first of two candidates wins."""


class Comparison(BaseModel):
    """Your comparison of the two answers."""

    reasoning: str = Field(description="Where the two differ, and what is right there.")
    better: one_of((1, 2)) = Field(description="The number of the better answer, 1 or 2.")  # type: ignore[valid-type]


class Ranking(NamedTuple):
    """What comparisons say of candidates: the score of each (0..1), and the comparisons that it rests on."""

    scores: list[float]
    results: list[Result]

    @property
    def best(self) -> int:
        """The candidate that is best, of equals the first."""
        return self.scores.index(max(self.scores))

    @property
    def reason(self) -> str:
        """Why it is the best, in words."""
        best = self.best
        compared = [result for result in self.results if best in (result.first, result.second)]
        if not compared:
            return "no answers could be compared"
        won = 0.0
        for result in compared:
            won += result.share if result.first == best else 1 - result.share
        return f"it is preferred in {won:g} of its {pluralize(len(compared), 'comparison')}"


async def rank_by_pairs(
    step: Step[Context],
    model: Model,
    shown: Sequence[str],
    most: int,
    *,
    request: str,
    task: str = "",
    material: str = "",
) -> Ranking:
    """Rank answers by comparisons, as many as the limits allow.

    Args:
        step: The node that asks.
        model: The judge.
        shown: The answers, quoted, the one first that is best otherwise.
        most: Most comparisons, of two calls each.
        request: The request, quoted.
        task: The description of the task; empty for an open question.
        material: What the answers rest on, quoted; empty if nothing.
    """

    async def is_better(first: int, second: int) -> bool:
        pair = [around("candidate", shown[first], number=1), around("candidate", shown[second], number=2)]
        prompt = prompts.COMPARE.format_messages(
            task=task, request=request, material=material, candidates="\n".join(pair)
        )
        comparison = await ask(step, model, prompt, Comparison, judging=True)
        return bool(comparison.better == 1)

    async def compare(first: int, second: int) -> float:
        """Compare two in both orders: a verdict that turns with the order is a draw."""
        wins, loses = await at_once([is_better(first, second), is_better(second, first)])
        share = (wins + (not loses)) / ORDERS
        step.emit("compared", first=first, second=second, share=share)
        return share

    results = await tournament(len(shown), most, compare, lambda: step.meter.calls_left // ORDERS)
    return Ranking(scores(len(shown), results), results)


async def tournament(count: int, most: int, compare: Compare, affordable: Callable[[], int]) -> list[Result]:
    """Compare candidates wave by wave, those of a wave at once, the most informative first.

    Args:
        count: How many candidates there are.
        most: Most comparisons.
        compare: Compares two of them.
        affordable: Returns how many comparisons the limits still allow.

    Returns:
        The results, in the order in which they were planned; fewer, if a limit or a failing judge has stopped some.
    """
    results: list[Result] = []
    while True:
        left = max(min(most - len(results), affordable()), 0)
        pairs = next_pairs(count, results)[:left]
        if not pairs:
            return results
        wave: dict[tuple[int, int], float] = {}

        async def keep(first: int, second: int, wave: dict[tuple[int, int], float] = wave) -> None:
            wave[first, second] = await compare(first, second)

        try:
            await each_to_its_end([keep(*pair) for pair in pairs])
        except (LimitReached, ModelFailed):
            most = 0
        results += [Result(*pair, wave[pair]) for pair in pairs if pair in wave]
