"""Makes the comparison and shows it: as a table for the terminal, or as plain data."""

from dataclasses import asdict
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.peers.figures import Comparison, Figures
from bench.peers.measure import measure_peers
from bench.peers.searches import ENTRIES

COLUMNS = ("search", "calls", "waves", "clock", "CPU a call", "nodes", "each tenth request fails")


def compare() -> Comparison:
    """Measure all searches, and show on stderr how far it is: the first time their environments are made."""
    look = (TextColumn("{task.description:66}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*look, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(ENTRIES))
        return measure_peers(lambda what, done: progress.update(task, description=what, completed=done))


def cells(figures: Figures) -> tuple[str, ...]:
    """Return the figures of a search as text, in the order of `COLUMNS`."""
    run, sent = figures.run, figures.sent
    counts = (f"{sent.calls}", f"{sent.waves}", f"{run.seconds:.2f} s", f"{figures.cpu:.1f} ms", f"{run.nodes}")
    return figures.name, *counts, figures.fate


def view(comparison: Comparison) -> Group:
    """Show the table, and below it what was left out and why."""
    table = Table()
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in (COLUMNS[0], COLUMNS[-1]) else "right")
    for figures in comparison.figures:
        table.add_row(*(escape(cell) for cell in cells(figures)))
    reasons = (f"left out: {escape(what)}: {escape(why)}" for what, why in comparison.left_out.items())
    return Group(table, *reasons)


def plain(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the comparison as plain data: one entry for each search, including those left out."""
    measured = [{"what": figures.name, **asdict(figures), "fate": figures.fate} for figures in comparison.figures]
    return [*measured, *({"what": what, "left_out": why} for what, why in comparison.left_out.items())]
