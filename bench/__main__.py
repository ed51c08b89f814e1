"""Prints the figures of this project beside what it owes: `python -m bench [--json] [--peers]`."""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.checkpoints import measure_checkpoints
from bench.engine import measure_engine
from bench.limits import measure_limits
from bench.memory import measure_memory
from bench.peers.report import compare, plain, view
from bench.prefixes import measure_prefixes
from bench.rows import Row, kept, table
from bench.strategies import (
    LATENCY,
    measure_lats,
    measure_lats_parallel,
    measure_lats_together,
    measure_reflection,
    measure_reflexion,
)
from bench.wire import Server, serving

Measurement = Callable[[], list[Row]]


def measurements(server: Server) -> dict[str, Measurement]:
    """Return everything that is measured, by its name in the progress display."""
    return {
        "LATS": partial(measure_lats, server),
        "LATS, judged together": partial(measure_lats_together, server),
        "LATS, several leaves": partial(measure_lats_parallel, server),
        "Reflection": partial(measure_reflection, server),
        "Reflexion": partial(measure_reflexion, server),
        "Prompts": measure_prefixes,
        "Engine": measure_engine,
        "Checkpoints": measure_checkpoints,
        "Memory": measure_memory,
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
    parser.add_argument(
        "--peers",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="measure other libraries' searches, too; the first time they are installed, into the user's cache folder",
    )
    options = parser.parse_args()
    rows = measure()
    peers = compare() if options.peers else None
    if options.json:
        print(json.dumps([*(row.plain() for row in rows), *(plain(peers) if peers else [])], indent=2))
    else:
        Console().print(table(rows), *([view(peers)] if peers else []))
    return 0 if kept(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
