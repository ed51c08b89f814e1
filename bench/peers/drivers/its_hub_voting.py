"""its_hub's votes that stop early, over answers that were recorded: each line of stdin is a list of answers in order.

    <interpreter of the peer> its_hub_voting.py

For each line it prints as JSON what each of its two algorithms has drawn and elected. The model hands its answers over
one by one, each after the algorithm has seen the one before.
"""

import asyncio
import json
import random
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

BETWEEN = 20
"""Turns of the event loop in which an algorithm can look at an answer."""


class Recorded:
    """A language model that gives the recorded answers."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers, self.calls = answers, 0
        self._turns = [asyncio.Event() for _ in answers]

    async def pace(self) -> None:
        """Let one answer after the other out."""
        for turn in self._turns:
            turn.set()
            for _ in range(BETWEEN):
                await asyncio.sleep(0)

    async def agenerate_single(self, messages: Any, **options: Any) -> dict[str, str]:
        """Give the next answer in its turn."""
        turn = self.calls
        self.calls += 1
        await self._turns[turn].wait()
        return {"role": "assistant", "content": self.answers[turn]}


async def vote(algorithm: Any, answers: Sequence[str]) -> tuple[int, str]:
    """Return how many answers an algorithm draws, and which one it elects."""
    model = Recorded(answers)
    pacing = asyncio.create_task(model.pace())
    result = await algorithm.ainfer(model, "The game.", budget=len(answers), return_response_only=False)
    pacing.cancel()
    return len(result.responses), result.the_one["content"]


def main() -> None:
    """Vote until stdin ends."""
    library = import_module("its_hub")
    at_once = import_module("its_hub.core.orchestrator").LMOrchestrator(max_concurrency=-1)
    algorithms = [
        library.BetaSelfConsistency(orchestrator=at_once),
        library.AdaptiveSelfConsistency(orchestrator=at_once),
    ]
    random.seed(0)  # it elects one of equals at random
    for line in sys.stdin:
        answers = json.loads(line)
        print(json.dumps([asyncio.run(vote(algorithm, answers)) for algorithm in algorithms]), flush=True)


if __name__ == "__main__":
    main()
