"""Writes to the terminal. What comes from models and tools is data: it can neither colour nor command the terminal."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reflective_agents.text.structure import Json

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # titles, links
    r"|\x1b[ -~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tabs and line feeds, those that turn the direction of writing, and halves of characters."""


def clean(text: Json) -> str:
    """Remove from a text whatever a terminal would obey; line feeds and tabs stay."""
    return _CONTROLS.sub("", _SEQUENCES.sub("", str(text).replace("\r\n", "\n")))


CELL = 500
"""Characters of a cell of a table."""


def one_line(text: Json, length: int = 200) -> str:
    """Return the beginning of a text, cleaned, on one line."""
    line = " ".join(clean(text).split())
    return line if len(line) <= length else line[: length - 1] + "…"


def shown(value: Json) -> str:
    """Format a value of an event or of the state for a table cell or a plain line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    text = "; ".join(map(str, value)) if isinstance(value, list) else value
    return one_line(text, CELL) or "-"


def wrapped(text: str) -> str:
    """Return a text with its lines broken between words, where stdout is a terminal."""
    if not sys.stdout.isatty():
        return text
    console = stdout()
    parts: list[str] = []
    for line in text.split("\n"):
        lines = Text(line).wrap(console, console.width) if line else [Text()]
        parts += [part.plain.rstrip() for part in lines]
    return "\n".join(parts)


def stdout() -> Console:
    """Return the console for results; lines are not wrapped where stdout is not a terminal."""
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 10_000)


def stderr() -> Console:
    """Return the console for progress and errors."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def say(text: str) -> None:
    """Print one plain line on stderr."""
    print(one_line(text, 2000), file=sys.stderr, flush=True)


def program() -> str:
    """Return what to type for this command: `reflect` where it is on the path, else the file that was called."""
    called = Path(sys.argv[0])
    on_path = shutil.which("reflect")
    if called.name != "reflect" or (on_path and Path(on_path).samefile(called)):
        return "reflect"
    return shlex.quote(os.path.relpath(called))


def table(columns: Sequence[str], rows: Iterable[Sequence[Json]]) -> Table:
    """Build a table of plain values; the first column never wraps."""
    built = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        built.add_column(column, no_wrap=column == columns[0], overflow="fold")
    for row in rows:
        built.add_row(*(Text(shown(cell)) for cell in row))
    return built


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Json]], *, turn: bool = False) -> None:
    """Print a table on stdout, as tab-separated lines where stdout is not a terminal.

    Args:
        columns: The heads of the columns.
        rows: The cells.
        turn: Whether a table that is wider than the terminal becomes one with a column for each row.
    """
    if sys.stdout.isatty():
        rows = list(rows)
        console, printed = stdout(), table(columns, rows)
        if turn:
            unlimited = console.options.update(width=10_000)
            if console.measure(printed, options=unlimited).maximum > console.width:
                columns, *rows = zip(columns, *rows, strict=True)
                printed = table(columns, rows)
        console.print(printed)
        return
    for row in (columns, *rows):
        print("\t".join(map(shown, row)))
