"""Makes the comparison, and formats it as Markdown."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.peers.figures import Comparison, Figures
from bench.peers.measure import measure_peers
from bench.peers.searches import Entry

HEAD = """| search | calls | waves | clock | CPU a call | nodes | each tenth request fails |
|---|--:|--:|--:|--:|--:|---|"""


def compare(entries: Sequence[Entry]) -> Comparison:
    """Measure searches, and show on stderr how far it is: the first time their environments are made."""
    look = (TextColumn("{task.description:66}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*look, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(entries))
        return measure_peers(entries, lambda what, done: progress.update(task, description=what, completed=done))


def report(comparison: Comparison) -> str:
    """Format the table, and below it what was left out and why."""
    rows = [f"| {' | '.join(cells(figures))} |" for figures in comparison.figures]
    reasons = [f"left out: {what}: {why}" for what, why in comparison.left_out.items()]
    return "\n".join([HEAD, *rows, *(["", *reasons] if reasons else [])])


def cells(figures: Figures) -> tuple[str, ...]:
    """Return the figures of a search as text, in the order of `HEAD`."""
    run, sent = figures.run, figures.sent
    counts = (f"{sent.calls}", f"{sent.waves}", f"{run.seconds:.2f} s", f"{figures.cpu:.1f} ms", f"{run.nodes}")
    return figures.name, *counts, figures.fate
