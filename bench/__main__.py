"""Prints the figures of this project beside its goals, and other libraries' searches: `python -m bench`."""

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.checkpoints import measure_checkpoints
from bench.engine import measure_engine
from bench.limits import measure_limits
from bench.memory import measure_memory
from bench.options import MISSED, parser_of
from bench.peers.report import compare, report
from bench.peers.searches import ENTRIES, OWN
from bench.prefixes import measure_prefixes
from bench.rows import Row, kept, table
from bench.strategies import (
    measure_lats,
    measure_lats_each,
    measure_lats_parallel,
    measure_reflection,
    measure_reflexion,
)
from bench.wire import Server, serving

Measurement = Callable[[], list[Row]]


class Sizes(NamedTuple):
    """How much is measured.

    Attributes:
        latency: Seconds that the model's server takes to answer.
        rounds: How often everything timed is repeated; the best counts.
        nodes: Nodes of the engine's large tree.
        expansions: Expansions of the smaller tree that is checkpointed, and of the larger one.
        memories: Entries of the memory.
    """

    latency: float
    rounds: int
    nodes: int
    expansions: tuple[int, int]
    memories: int


FULL = Sizes(latency=0.1, rounds=5, nodes=10_000, expansions=(200, 2_000), memories=100_000)
QUICK = Sizes(latency=0.01, rounds=1, nodes=500, expansions=(50, 100), memories=1_000)


def measurements(server: Server, sizes: Sizes) -> dict[str, Measurement]:
    """Return everything that is measured, by its name in the progress display."""
    return {
        "LATS": partial(measure_lats, server, sizes.rounds),
        "LATS, each judged alone": partial(measure_lats_each, server, sizes.rounds),
        "LATS, several leaves": partial(measure_lats_parallel, server, sizes.rounds),
        "Reflection": partial(measure_reflection, server, sizes.rounds),
        "Reflexion": partial(measure_reflexion, server, sizes.rounds),
        "Prompts": measure_prefixes,
        "Engine": partial(measure_engine, sizes.nodes, sizes.rounds),
        "Checkpoints": partial(measure_checkpoints, *sizes.expansions),
        "Memory": partial(measure_memory, sizes.memories),
        "Limits": partial(measure_limits, server),
    }


def measure(sizes: Sizes) -> list[Row]:
    """Measure everything, and show on stderr how far it is."""
    look = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    rows: list[Row] = []
    with serving(sizes.latency) as server, Progress(*look, console=Console(stderr=True), transient=True) as progress:
        todo = measurements(server, sizes)
        task = progress.add_task("", total=len(todo))
        for name, run in todo.items():
            progress.update(task, description=name)
            rows += run()
            progress.advance(task)
    return rows


def main() -> int:
    """Measure and print; `MISSED` if a goal that can be counted is missed."""
    parser = parser_of("bench", __doc__)
    parser.add_argument("--no-peers", action="store_true", help="measure no other libraries, and install none")
    options = parser.parse_args()
    rows = measure(QUICK if options.quick else FULL)
    print(table(rows), flush=True)
    if not options.no_peers:
        print(f"\n{report(compare(OWN[-1:] if options.quick else ENTRIES))}")
    return 0 if options.quick or kept(rows) else MISSED


if __name__ == "__main__":
    sys.exit(main())
