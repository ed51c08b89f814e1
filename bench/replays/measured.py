"""What a replay gives: its figures, where it differs from the log and why, and what was asked in vain."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bench.replays.keyed import Recorded

T = TypeVar("T")

UNEXPLAINED = "differs from the log for no known reason"


class Differences(defaultdict[str, list[str]]):
    """Why a replay differs from the log, and in which tasks: `id`, or `id#trial`."""

    def __init__(self) -> None:
        super().__init__(list)

    def add(self, reason: str, task: str, trial: int | None = None) -> None:
        """Note a task, or one of its trials."""
        self[reason].append(task if trial is None else f"{task}#{trial}")


@dataclass
class Measured:
    """The outcome of a replay."""

    figures: dict[str, Any]
    """Under the names of the manifest."""
    differences: Differences
    served: list[Recorded[Any, Any]]
    """The recorded answers, which ought to have been served without a miss, and to the last one."""
    corrections: dict[str, int] = field(default_factory=dict)
    """What the listed differences take from a figure: with it, it is the published one."""

    def as_published(self) -> dict[str, Any]:
        """Return the figures with the log's verdict on the tasks that are listed as different."""
        corrected = {name: self.figures[name] + change for name, change in self.corrections.items()}
        return self.figures | corrected


async def together(runs: Iterable[Coroutine[Any, Any, T]], at_once: int = 20) -> list[T]:
    """Await all runs, a bounded number at a time, and return their results in order."""
    places = asyncio.Semaphore(at_once)

    async def bounded(run: Coroutine[Any, Any, T]) -> T:
        async with places:
            return await run

    return await asyncio.gather(*map(bounded, runs))
