"""How far an evaluation is: counted from the results as they come, and shown live or line by line."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn

from reflective_agents.cli.output import say, stderr
from reflective_agents.cli.progress import redrawable
from reflective_agents.evals.results import Result
from reflective_agents.state.outcome import pluralize


class Tally:
    """The results so far.

    Attributes:
        total: How many there will be.
        results: Those that are there; of two for one task the later.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.results: dict[str, Result] = {}
        self._new = 0
        self._began = time.monotonic()

    def add(self, result: Result, new: bool) -> None:
        """Take in a result, a new one or one of an earlier run."""
        self.results[result["id"]] = result
        self._new += new

    @property
    def answered(self) -> int:
        """How many tasks have an answer, right or wrong."""
        return sum(result["answer"] is not None for result in self.results.values())

    def line(self) -> str:
        """Show the running figures on one line."""
        results = self.results.values()
        measured = [result["correct"] for result in results if result["correct"] is not None]
        usages = [result["usage"] for result in results if result["usage"]]
        parts = [f"{len(results):,}/{self.total:,} tasks"]
        if measured:
            parts.append(f"{sum(measured) / len(measured):.1%} correct")
        parts.append(pluralize(sum(usage["model_calls"] for usage in usages), "call"))
        parts.append(f"{sum(usage['total_tokens'] for usage in usages):,} tokens")
        if cost := sum(usage.get("cost", 0.0) for usage in usages):
            parts.append(f"${cost:,.4f}")
        if cached := sum(result.get("cached_calls", 0) for result in results):
            parts.append(f"{pluralize(cached, 'call')} from the cache")
        if crashed := sum(result["error"] is not None for result in results):
            parts.append(f"{crashed:,} crashed")
        return ", ".join([*parts, *self._left()])

    def _left(self) -> list[str]:
        missing = self.total - len(self.results)
        if not missing or not self._new:
            return []
        # By the new results alone: those of an earlier run took no time in this one.
        return [f"{_duration((time.monotonic() - self._began) / self._new * missing)} left"]


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


@contextmanager
def counting(tally: Tally) -> Iterator[Callable[[Result, bool], None]]:
    """Show the tally while the body runs; it gets what every result must be told to."""
    if not redrawable():
        yield lambda result, new: _add_and_say(tally, result, new)
        return
    columns = (BarColumn(bar_width=24), TextColumn("{task.fields[line]}"))
    with Progress(*columns, console=stderr(), redirect_stdout=False, redirect_stderr=False) as progress:
        bar = progress.add_task("", total=tally.total, line=tally.line())

        def add(result: Result, new: bool) -> None:
            tally.add(result, new)
            progress.update(bar, completed=len(tally.results), line=tally.line())

        yield add


def _add_and_say(tally: Tally, result: Result, new: bool) -> None:
    tally.add(result, new)
    if new:
        say(tally.line())
