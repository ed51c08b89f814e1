"""Choosing and merging recorded answers at equal requests and tokens, for docs/choosing.md.

    python -m bench.game24.choosing [FOLDER]

The answers are the 100 chains of thought that GPT-4 was recorded to write on each game. Nobody was recorded to judge,
to compare or to merge them: there a script is right with a known rate, so that the table says from which rate on it
pays, and takes as many words as a recorded chain. Nothing is verified within a run. Beside stands the best answer,
which only a verifier finds.
"""

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.game24.sampling import DATA, DRAWS
from bench.options import parser_of
from bench.recorded import RECORDED
from bench.replays.records import Record, load
from reflective_agents.environments.base import State, Task, Transition
from reflective_agents.environments.game24 import Game24
from reflective_agents.graphs import aggregation, best_of_n, chain_of_thought
from reflective_agents.testing.fake import FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request

SEEDS = 4
BUDGETS = (8,)
RATES = (0.6, 0.9)
ANSWER = re.compile(r"Answer: (.*)")
PLAIN: dict[str, Any] = {"search": "none", "examples": False, "max_total_tokens": 10**9}
HEAD = "| {} requests | right, % | tokens | the vote on as many tokens: samples | right, % |\n|---|--:|--:|--:|--:|"


class Unrewarded(Game24):
    """The game, in which no single answer is rewarded."""

    async def step(self, state: State, action: str) -> Transition:
        """Take the answer, and tell nobody what it is worth; what is no arithmetic is refused."""
        taken = await super().step(state, action)
        return taken._replace(observation="" if taken.valid else taken.observation, reward=None)


class Game(NamedTuple):
    """A game with the chains of thought that were recorded for it."""

    task: Task
    chains: Sequence[str]

    def is_right(self, answer: str) -> bool:
        """Tell whether an answer is right."""
        return bool(Game24().score(self.task, answer)["solved"])


class Author:
    """A model that writes recorded answers, and judges, compares and merges with a known rate.

    Args:
        game: The recorded answers.
        rate: The chance that it scores a right answer above a wrong one, prefers it, or takes it over from a group.
        seed: The order of the answers, and its luck.
    """

    def __init__(self, game: Game, rate: float, seed: int) -> None:
        self.game, self.rate, self.luck = game, rate, random.Random(seed)
        self.left = iter(self.luck.sample(game.chains, len(game.chains)))

    def __call__(self, request: Request) -> Reply:
        """Judge, compare, merge, or answer."""
        is_good = self.luck.random() < self.rate
        if request.schema:
            shown = request.last.split("</candidate>")[:-1] or [request.last]
            right = [any(map(self.game.is_right, ANSWER.findall(part))) for part in shown]
            return self.opinion(right, is_good)
        if "<attempt" in request.text:
            return self.merged(ANSWER.findall(request.text.partition("<attempt")[2]), is_good)
        chain = next(self.left)
        if not request.tools and "Action 1:" not in request.text:
            return chain
        thought, _, answer = chain.rpartition("\n")
        return f"Thought 1: {' '.join(thought.split())}\nAction 1: {answer}"

    def opinion(self, right: Sequence[bool], is_good: bool) -> Reply:
        """Score an answer, or say which of two is better, in as many words as there are in a chain."""
        words = self.luck.choice(self.game.chains)
        if len(right) == 1:
            return {"reasoning": words, "score": 0.8 if right[0] == is_good else 0.2, "solved": False}
        first, second = right
        is_first = first == is_good if first != second else is_good
        return {"reasoning": words, "better": 1 if is_first else 2}

    def merged(self, shown: Sequence[str], is_good: bool) -> str:
        """Take one of the answers over, with its chain."""
        good = [answer for answer in shown if self.game.is_right(answer) == is_good]
        answer = self.luck.choice(good or shown or ["none"])
        return next((chain for chain in self.game.chains if chain.endswith(answer)), f"Answer: {answer}")


class Way(NamedTuple):
    """A strategy, and its settings for so many requests."""

    graph: Any
    settings: Callable[[int], dict[str, Any]]


VOTE = "most frequent"
WAYS = {
    VOTE: Way(chain_of_thought.graph, lambda k: {"samples": k}),
    "best_of_n, by score": Way(best_of_n.graph, lambda k: {"n": k // 2, "max_depth": 1}),
    "best_of_n, by pairs": Way(
        best_of_n.graph, lambda k: {"n": k // 2, "max_depth": 1, "choose": "pairs", "comparisons": k // 4}
    ),
    "RSA, K 2, T 1, by pairs": Way(
        aggregation.graph, lambda k: {"population": k // 2, "rounds": 1, "choose": "pairs", "comparisons": k // 4}
    ),
    "RSA, K 2, T 2": Way(aggregation.graph, lambda k: {"population": k // 2, "group": 2, "rounds": 2}),
    "RSA, K 2, T 4": Way(aggregation.graph, lambda k: {"population": k // 4, "group": 2, "rounds": 4}),
}


class Result(NamedTuple):
    """What a way has made of each game: the share of seeds that are right, and the tokens of a run."""

    right: NDArray[np.float64]
    tokens: float

    @property
    def shown(self) -> str:
        """The share of games in %, with its 95 % interval over sets of games."""
        drawn = np.random.default_rng(0).choice(self.right, (DRAWS, len(self.right))).mean(axis=1)
        low, high = np.quantile(drawn, (0.025, 0.975)) * 100
        return f"{self.right.mean() * 100:.1f} ({low:.0f} to {high:.0f})"


async def play(way: Way, game: Game, requests: int, rate: float, seed: int) -> tuple[bool, int]:
    """Let a way answer a game; return whether that is right, and the tokens that it took."""
    model = FakeChatModelWithoutN(reply=Author(game, rate, seed))
    context = {**PLAIN, "environment": Unrewarded(), "model": model, **way.settings(requests)}
    request: dict[str, Any] = {"messages": [("user", "Play.")], "task": game.task}
    out = await way.graph.ainvoke(request, context={**context, "max_model_calls": requests})
    return game.is_right(out["answer"] or "none"), out["usage"]["total_tokens"]


class Table:
    """Plays the ways on all games, each once.

    Args:
        games: The games.
        seeds: How often each way plays each game.
    """

    def __init__(self, games: Sequence[Game], seeds: int) -> None:
        self.games, self.seeds = games, seeds
        self.vote = cache(lambda samples: self.result(WAYS[VOTE], samples, 1.0))

    def result(self, way: Way, requests: int, rate: float) -> Result:
        """Let a way answer all games."""

        async def all_games() -> list[list[tuple[bool, int]]]:
            seeds = range(self.seeds)
            return [[await play(way, game, requests, rate, seed) for seed in seeds] for game in self.games]

        played = np.array(asyncio.run(all_games()), float)
        return Result(played[:, :, 0].mean(axis=1), float(played[:, :, 1].mean()))

    def row(self, name: str, requests: int, rate: float) -> str:
        """Return a line: what a way finds, and what the vote finds on as many tokens."""
        own = self.vote(requests) if name == VOTE else self.result(WAYS[name], requests, rate)
        samples = min(round(own.tokens * requests / self.vote(requests).tokens), len(self.games[0].chains))
        beside = self.vote(max(samples, 1))
        shown = name if name == VOTE else f"{name}, right in {rate:.0%}"
        return f"| {shown} | {own.shown} | {own.tokens:,.0f} | {samples} | {beside.shown} |"

    def ceiling(self, requests: int) -> str:
        """Return the line of the best answer: whether any of as many samples is right."""
        found: list[float] = []
        for game in self.games:
            drawn = [random.Random(seed).sample(game.chains, requests) for seed in range(self.seeds)]
            found.append(float(np.mean([any(map(game.is_right, chains)) for chains in drawn])))
        vote = self.vote(requests)
        return f"| best_of_n, verified | {Result(np.array(found), 0).shown} | {vote.tokens:,.0f} | | |"


def read_game(record: Record) -> Game:
    """Read the recorded chains of a game."""
    task: Task = {"id": str(record["id"]), "question": record["task"]["input"]}
    return Game(task, [each["text"] for each in record["outputs"]])


def main() -> None:
    """Print the table."""
    parser = parser_of("bench.game24.choosing", __doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    options = parser.parse_args()
    games = [read_game(record) for record in load(options.folder, DATA)[: 2 if options.quick else None]]
    table = Table(games, 1 if options.quick else SEEDS)
    for requests in BUDGETS[: 1 if options.quick else None]:
        print(HEAD.format(requests))
        for name in WAYS:
            for rate in RATES[: 1 if name == VOTE else None]:
                print(table.row(name, requests, rate), flush=True)
        print(table.ceiling(requests), "", sep="\n")


if __name__ == "__main__":
    main()
