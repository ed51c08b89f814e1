"""What each part of LATS is worth: games of 24 solved without it, with 40 calls each, and with as many as it wants.

What reflections are worth cannot be told from recorded answers, which were given without: there the model is a fake one
that can use a lesson.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from graphs import lats
from tests.replays.budgets import LATS, Entry, ceiling, fixed, recorded_games, show
from tests.replays.learner24 import Learner

CALLS = (40, 100_000)
LEARNING_CALLS = (40, 80, 100_000)


def changed(**settings: Any) -> Entry:
    """LATS with other settings."""
    return Entry(lats.graph, fixed(**LATS | settings))


ABLATIONS: Mapping[str, Entry] = {
    "as set: n 8, K 30, w 1, lambda 0.5, depth 4": changed(),
    "without judge: lambda 0": changed(judge_weight=0.0),
    "without self-consistency: lambda 1": changed(judge_weight=1.0),
    "without simulation": changed(simulate=False),
    "w 0": changed(exploration_weight=0.0),
    "w 2": changed(exploration_weight=2.0),
    "depth 3": changed(max_depth=3),
    "depth 5": changed(max_depth=5),
    "n 3": changed(n=3),
    "n 5": changed(n=5),
    "one list of proposals": changed(lists=1),
}
LESSONS: Mapping[str, Entry] = {
    f"{most or 'no'} lesson{'' if most == 1 else 's'}": changed(max_lessons=most) for most in (0, 1, 4, 10)
}
HEEDED: Mapping[str, partial[Learner]] = {
    "4 lessons, heeded by the policy only": partial(Learner, values=False),
    "4 lessons, heeded by the value only": partial(Learner, proposes=False),
}


async def main() -> None:
    """Print the tables."""
    await show(ABLATIONS, CALLS, ceiling())
    await show(LESSONS, LEARNING_CALLS, len(recorded_games()), Learner)
    for name, player in HEEDED.items():
        await show({name: LESSONS["4 lessons"]}, LEARNING_CALLS, len(recorded_games()), player)


if __name__ == "__main__":
    asyncio.run(main())
