"""What it costs to solve a game, in requests, in samples and in tokens; and what so many games of so many say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

from scipy.special import betaincinv

from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Script

PLAIN: dict[str, Any] = {"environment": "game24", "search": "none", "examples": False, "max_total_tokens": 10**9}


class Cost(NamedTuple):
    """What a run has spent.

    Attributes:
        requests: Calls of the model; several samples asked for in one request count once.
        samples: Replies: each sample counts.
        tokens: Of prompts and replies; a prompt counts once for all samples of its request.
    """

    requests: float
    samples: float
    tokens: float


@dataclass(frozen=True)
class Game:
    """What came of one game: whether it was solved, and what was spent until then."""

    solved: bool
    spent: Cost

    def within(self, unit: str, budget: float) -> bool:
        """Tell whether it was solved for no more than so much."""
        return self.solved and bool(getattr(self.spent, unit) <= budget)


@dataclass(frozen=True)
class Entry:
    """A search with its settings."""

    graph: Any
    settings: Mapping[str, Any]


async def play(
    entry: Entry, task: str, player: Script, most: int, model: type[FakeChatModelWithoutN] = FakeChatModel
) -> Game:
    """Run a search on a game until it is solved, it gives up, or `most` calls are spent.

    A run under a lower limit takes the same way up to there: so one run tells what any number of calls would solve.
    """
    chat = model(reply=player)
    run_input = {"messages": [("user", task)], "task": {"id": task, "question": task}}
    context = {**PLAIN, **entry.settings, "max_model_calls": most, "model": chat}
    out = await entry.graph.ainvoke(run_input, context=context)
    samples = sum(request.n for request in chat.calls)
    spent = Cost(out["usage"]["model_calls"], samples, out["usage"]["total_tokens"])
    return Game(out["outcome"]["status"] == "solved", spent)


async def play_all(entry: Entry, tasks: Sequence[str], player: Callable[[], Script], most: int) -> list[Game]:
    """Run a search on each of the games, with a model of its own."""
    return [await play(entry, task, player(), most) for task in tasks]


def solved_within(games: Sequence[Game], unit: str, budget: float) -> int:
    """Count the games that were solved for no more than so much."""
    return sum(game.within(unit, budget) for game in games)


def best_of(right: int, drawn: int, k: int) -> float:
    """Calculate the chance that at least one of k samples is right, where `right` of `drawn` recorded ones were."""
    return 1 - comb(drawn - right, min(k, drawn)) / comb(drawn, min(k, drawn))


def interval(found: float, runs: int) -> tuple[float, float]:
    """Calculate the Clopper-Pearson interval at 95 %, as shares; `found` may be an expected number."""
    low = float(betaincinv(found, runs - found + 1, 0.025)) if found else 0.0
    return low, float(betaincinv(found + 1, runs - found, 0.975)) if found < runs else 1.0


def shown(found: float, runs: int) -> str:
    """Format a number of games with the interval of its share, for a table."""
    low, high = interval(found, runs)
    return f"{found:.0f} ({100 * low:.0f} to {100 * high:.0f} %)"


def sign_test(first: Sequence[bool], second: Sequence[bool]) -> tuple[int, int, float]:
    """Compare two searches on the same games.

    Returns:
        How many games only the first has solved, how many only the second, and how likely a difference as large is
        where both are equally good (the exact sign test, two-sided).
    """
    pairs = [*zip(first, second, strict=True)]
    only_one, only_other = pairs.count((True, False)), pairs.count((False, True))
    n, least = only_one + only_other, min(only_one, only_other)
    return only_one, only_other, min(1.0, 2 * sum(comb(n, k) for k in range(least + 1)) / 2**n)
