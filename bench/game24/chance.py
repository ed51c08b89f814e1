"""Searches against chance: what the graphs solve where a step is right with a known chance, beside what is computed.

The model plays the game of 24 with an exact solver: wherever 24 can still be reached it takes one of the right steps
with chance p, each as likely as the others, else one of the wrong ones. It knows exactly which numbers are lost.

AB-MCTS draws by itself where to go on, so its chance over several steps has no closed form: it writes whole answers,
the first of them right as often as all three steps of a game are in a row.

python -m bench.game24.chance    # the table of docs/search-results.md
"""

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean
from typing import Any, NamedTuple

from bench import chance
from bench.chance import Measured
from bench.game24.recorded import Player, after
from bench.options import parser_of
from reflective_agents.environments.game24 import legal_steps, solve
from reflective_agents.graphs import ab_mcts, best_of_n, lats, rap, react, tree_of_thoughts
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, Script

P, STEPS, RUNS = 0.5, 3, 400
GAMES = ("1 4 5 9", "3 3 4 4", "4 5 7 10", "6 9 10 12")
"""Games in which no two ways of right steps lead to the same numbers, so that each state is drawn from once."""
BLIND = chance.one_shot(P, STEPS)
"""Without a search."""


class Options(NamedTuple):
    """The steps from some numbers, one for each outcome, by the numbers that it leaves."""

    right: dict[str, str]
    wrong: dict[str, str]


@cache
def options(numbers: str) -> Options:
    """Return the steps after which 24 can be reached, and the others."""
    state = {"numbers": numbers.split(), "terms": numbers.split(), "done": False}
    found = Options({}, {})
    for step in legal_steps(state):
        rest = str(after(numbers, step))
        found[0 if solvable(rest) else 1].setdefault(rest, step)
    return found


@cache
def solvable(numbers: str) -> bool:
    """Tell whether 24 can be reached."""
    return solve(numbers.split()) is not None


class Chance(Player):
    """A model that is right with chance p in each step, and knows what is lost."""

    def __init__(self, p: float, seed: int) -> None:
        self.p, self.seed = p, seed

    def steps(self, numbers: str, request: Request) -> list[str]:
        """Draw one step, anew for each candidate and each time it is asked; none where the game is over."""
        luck = random.Random(f"{self.seed} {request.key} {request.index} {request.attempt}")
        right, wrong = options(numbers)
        drawn = [*(right if right and luck.random() < self.p else wrong).values()]
        return [luck.choice(drawn)] if drawn else []

    def labels(self, numbers: str) -> Sequence[str]:
        """Return the true label."""
        return ["sure" if solvable(numbers) else "impossible"]

    def likelihood(self, numbers: str, step: str) -> float:
        """Return nearly 0 for a step after which the game is lost, else 1."""
        return 1.0 if solvable(str(after(numbers, step))) else 0.01


class Writer:
    """A model that writes whole answers: the first ones are right with one chance, those that refine another one with
    another. As a judge it knows."""

    def __init__(self, first: float, refined: float, seed: int) -> None:
        self.first, self.refined, self.seed = first, refined, seed

    def __call__(self, request: Request) -> Reply:
        """Judge the last answer, or write one."""
        if request.schema:
            right = re.findall(r"\b(right|wrong) answer", request.text)[-1] == "right"
            return {"reasoning": "Looked up.", "score": float(right), "solved": right}
        luck = random.Random(f"{self.seed} {request.key} {request.index} {request.attempt}")
        refines = any(message.type == "ai" for message in request.messages)
        right = luck.random() < (self.refined if refines else self.first)
        return f"The {'right' if right else 'wrong'} answer {luck.getrandbits(64):x}"


def to_the_end(numbers: str, n: int) -> float:
    """Calculate the chance to solve a game by n draws in each state that is reached."""
    if numbers == "24":
        return 1.0
    return chance.any_of([to_the_end(rest, n) for rest in options(numbers).right], P, n)


@dataclass(frozen=True)
class Entry:
    """A search with its settings, its computed chance, and the model that plays: by its seed."""

    graph: Any
    settings: dict[str, Any]
    computed: float
    model: Callable[[int], Script] = lambda seed: Chance(P, seed)


STRAIGHT = chance.straight(P, 3, STEPS)
TO_THE_END = mean(to_the_end(game, 3) for game in GAMES)
PLAYS: dict[str, Any] = {"environment": "game24", "examples": False}
SAMPLED: dict[str, Any] = PLAYS | {"proposals": "samples"}
LABELLED: dict[str, Any] = SAMPLED | {"grades": "labels", "grade_samples": 1, "max_depth": 4, "acting": "paper"}
LATS: dict[str, Any] = LABELLED | {"max_lessons": 0}
RAP: dict[str, Any] = SAMPLED | {"confidence_samples": 1, "max_depth": 4}

SEARCHES = {
    "react, one shot": Entry(react.graph, PLAYS | {"acting": "paper"}, BLIND),
    "best of n, N 8": Entry(
        best_of_n.graph, PLAYS | {"n": 8, "max_depth": 4, "acting": "paper"}, chance.best_of(BLIND, 8)
    ),
    "lats, n 3, K 1": Entry(lats.graph, LATS | {"n": 3, "max_rollouts": 1}, STRAIGHT),
    "lats, n 3, to the end": Entry(lats.graph, LATS | {"n": 3}, TO_THE_END),
    "tree of thoughts, breadth first, n 3, b 1": Entry(
        tree_of_thoughts.graph, LABELLED | {"n": 3, "beam": 1}, STRAIGHT
    ),
    "tree of thoughts, depth first, n 3": Entry(
        tree_of_thoughts.graph, LABELLED | {"n": 3, "method": "depth_first"}, TO_THE_END
    ),
    "rap, n 3, K 1": Entry(rap.graph, RAP | {"n": 3, "max_rollouts": 1}, STRAIGHT),
    "rap, n 3, to the end": Entry(rap.graph, RAP | {"n": 3, "max_rollouts": 100}, TO_THE_END),
    "ab_mcts, 8 answers": Entry(
        ab_mcts.graph,
        {"max_expansions": 8, "max_depth": 8},
        chance.best_of(BLIND, 8),
        lambda seed: Writer(BLIND, BLIND, seed),
    ),
    "ab_mcts, 6 answers, 1/2 of the refined ones right": Entry(
        ab_mcts.graph,
        {"max_expansions": 6, "max_depth": 6},
        chance.adaptive(BLIND, 0.5, 6),
        lambda seed: Writer(BLIND, 0.5, seed),
    ),
}


async def measure(entry: Entry, runs: int) -> Measured:
    """Run a search so many times, the games in turn."""
    return Measured(sum([await _solves(entry, seed) for seed in range(runs)]), runs)


async def _solves(entry: Entry, seed: int) -> bool:
    plays = "environment" in entry.settings
    question = GAMES[seed % len(GAMES)] if plays else f"Question {seed}?"
    task = {"task": {"id": question, "question": question}} if plays else {}
    model = FakeChatModel(reply=entry.model(seed))
    context = {"search": "none", **entry.settings, "model": model}
    out = await entry.graph.ainvoke({"messages": [("user", question)], **task}, context=context)
    return bool(out["outcome"]["status"] == "solved")


def main() -> None:
    """Print the table."""
    options = parser_of("bench.game24.chance", __doc__).parse_args()
    print("| search | computed | measured | interval |\n|---|--:|--:|---|", flush=True)
    for name, entry in SEARCHES.items():
        measured = asyncio.run(measure(entry, len(GAMES) if options.quick else RUNS))
        low, high = measured.interval
        share = measured.found / measured.runs
        print(f"| {name} | {entry.computed:.3f} | {share:.3f} | {low:.3f} to {high:.3f} |", flush=True)


if __name__ == "__main__":
    main()
