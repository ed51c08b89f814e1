"""Prints the figures of this project beside what it owes: `python -m bench [--json]`."""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.checkpoints import measure_checkpoints
from bench.limits import measure_limits
from bench.rows import Row, kept, table
from bench.strategies import (
    LATENCY,
    measure_lats,
    measure_lats_together,
    measure_reflection,
    measure_reflexion,
)
from bench.wire import Server, serving

Measurement = Callable[[], list[Row]]


def measurements(server: Server) -> dict[str, Measurement]:
    """Everything that is measured, by what the progress display calls it."""
    return {
        "LATS": partial(measure_lats, server),
        "LATS, judged together": partial(measure_lats_together, server),
        "Reflection": partial(measure_reflection, server),
        "Reflexion": partial(measure_reflexion, server),
        "Checkpoints": measure_checkpoints,
        "Limits": partial(measure_limits, server),
    }


def measure() -> list[Row]:
    """Measure everything, and show on stderr how far it is."""
    look = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    rows: list[Row] = []
    with serving(LATENCY) as server, Progress(*look, console=Console(stderr=True), transient=True) as progress:
        todo = measurements(server)
        task = progress.add_task("", total=len(todo))
        for name, run in todo.items():
            progress.update(task, description=name)
            rows += run()
            progress.advance(task)
    return rows


def main() -> int:
    """Measure and print; 1 if something owed that can be counted does not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    rows = measure()
    if options.json:
        print(json.dumps([row.plain() for row in rows], indent=2))
    else:
        Console().print(table(rows))
    return 0 if kept(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
