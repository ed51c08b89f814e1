"""Choosing and merging recorded answers, at equal requests: `python -m bench.game24.choosing`.

The answers are the 100 chains of thought that GPT-4 was recorded to write on each game. Nobody was recorded to compare
or to merge them: there a script is right with a known rate, so that the table says from which rate on it pays. Nothing
is verified within a run; what is right, the record says. Beside stands the best answer, which only a verifier finds.
"""

import asyncio
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench.game24.sampling import DATA, DRAWS, Game, recorded
from bench.options import parser_of
from bench.recorded import RECORDED
from bench.replays.records import load
from reflective_agents.environments.base import State, Transition
from reflective_agents.environments.game24 import Game24
from reflective_agents.graphs import aggregation, chain_of_thought
from reflective_agents.testing.fake import FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request

SEEDS = 1
BUDGETS = (8,)
RATES = (0.6, 0.9)
ANSWER = re.compile(r"Answer: (.*)")


class Unrewarded(Game24):
    """The game, in which no single answer is rewarded."""

    async def step(self, state: State, action: str) -> Transition:
        """Take the answer, and tell nobody what it is worth."""
        return (await super().step(state, action))._replace(observation="", reward=None)


class Author:
    """A model that writes recorded answers, and compares and merges with a known rate.

    Args:
        game: The recorded answers.
        rate: The chance that it prefers a right answer to a wrong one, or takes one over from a group.
        seed: The order of the answers, and its luck.
    """

    def __init__(self, game: Game, rate: float, seed: int) -> None:
        self.game, self.rate, self.luck = game, rate, random.Random(seed)
        self.left = iter(self.luck.sample(game.answers, len(game.answers)))

    def __call__(self, request: Request) -> Reply:
        """Compare, merge, or answer."""
        shown = ANSWER.findall(request.text.partition("<attempt")[2] or request.last)
        right = [answer in self.game.right for answer in shown]
        is_good = self.luck.random() < self.rate
        if request.schema:
            first, second = right
            return {"reasoning": "So.", "better": 1 if (first == is_good if first != second else is_good) else 2}
        if "<attempt" not in request.text:
            return f"Answer: {next(self.left) or 'none'}"
        chosen = [answer for answer, good in zip(shown, right, strict=True) if good == is_good] or shown
        return f"Answer: {self.luck.choice(chosen)}"


class Way(NamedTuple):
    """A strategy, and its settings for so many requests."""

    graph: Any
    settings: Callable[[int], dict[str, Any]]


WAYS = {
    "most frequent": Way(chain_of_thought.graph, lambda k: {"samples": k}),
    "by pairs": Way(
        aggregation.graph,
        lambda k: {"population": k // 2, "rounds": 1, "choose": "pairs", "comparisons": k // 4},
    ),
    "RSA, K 2, T 2": Way(aggregation.graph, lambda k: {"population": k // 2, "group": 2, "rounds": 2}),
    "RSA, K 2, T 4": Way(aggregation.graph, lambda k: {"population": k // 4, "group": 2, "rounds": 4}),
}


async def is_right(way: Way, game: Game, requests: int, rate: float, seed: int) -> bool:
    """Let a way answer a game, and look up whether that is right."""
    model = FakeChatModelWithoutN(reply=Author(game, rate, seed))
    settings = {"search": "none", "examples": False, "environment": Unrewarded(), **way.settings(requests)}
    run_input: dict[str, Any] = {"messages": [("user", "Play.")], "task": {"id": "1", "question": "1 2 3 4"}}
    out = await way.graph.ainvoke(run_input, context={**settings, "model": model, "max_model_calls": requests})
    return Game24().vote(out["answer"] or "", "") in game.right


async def row(name: str, games: list[Game], rate: float, budgets: tuple[int, ...], seeds: int) -> str:
    """Return a line of the table: the share of games that are right, in %, with its interval over the games."""
    cells = []
    for requests in budgets:
        shares = [
            np.mean([await is_right(WAYS[name], game, requests, rate, seed) for seed in range(seeds)]) * 100
            for game in games
        ]
        cells.append(_cell(np.array(shares)))
    shown = "" if name == "most frequent" else f", right in {rate:.0%}"
    return f"| {name}{shown} | {' | '.join(cells)} |"


def ceiling(games: list[Game], budgets: tuple[int, ...], seeds: int) -> str:
    """Return the line of the best answer: whether any of the samples is right."""
    cells = []
    for requests in budgets:
        found = [
            np.mean(
                [not game.right.isdisjoint(random.Random(seed).sample(game.answers, requests)) for seed in range(seeds)]
            )
            for game in games
        ]
        cells.append(_cell(np.array(found) * 100))
    return f"| best_of_n, verified | {' | '.join(cells)} |"


def _cell(shares: Any) -> str:
    drawn = np.random.default_rng(0).choice(shares, (DRAWS, len(shares))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{shares.mean():.1f} ({low:.0f} to {high:.0f})"


def main() -> None:
    """Print the table."""
    options = parser_of("bench.game24.choosing", __doc__).parse_args()
    games = [recorded(record) for record in load(RECORDED, DATA)[: 2 if options.quick else None]]
    budgets, seeds = (BUDGETS[:1], 1) if options.quick else (BUDGETS, SEEDS)
    print(f"| way | {' | '.join(f'{requests} requests' for requests in budgets)} |\n|---|{'--:|' * len(budgets)}")
    for name in WAYS:
        for rate in RATES[: 1 if name == "most frequent" else None]:
            print(asyncio.run(row(name, games, rate, budgets, seeds)), flush=True)
    print(ceiling(games, budgets, seeds))


if __name__ == "__main__":
    main()
