"""Runs scripts and writes their tables into the pages that show them: `python -m bench.pages bench bench.samples`.

A section of a page names what makes its tables: a script of this package, a test, or, for what no command makes again,
"by hand on" and a date. The tables of a script go where a table of the same head stands in such a section, one after
the other; a date after "Measured on" there becomes today's.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from bench.options import MISSED, parser_of

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCE = re.compile(
    r"python -m (?P<script>bench(?:\.\w+)*)|`(?P<test>tests/[\w/]+\.py)|(?P<hand>by hand on \d{4}-\d\d-\d\d)"
)
FIGURE = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e-\d+)?( ?[^\W\d]{1,2}| ?%| a minute)?( \(.*\)|, .*)?")
_DAY = re.compile(r"(?<=Measured on )\d{4}-\d\d-\d\d")


class Table(NamedTuple):
    """A table of a text: its first line and the one behind it, its rows, and what its section says that makes it."""

    begins: int
    ends: int
    rows: Sequence[str]
    source: str | None

    @property
    def head(self) -> str:
        """The names of its columns."""
        return self.rows[0]

    @property
    def has_figures(self) -> bool:
        """Whether a third of its cells are figures, not counting the first column, which names the rows."""
        cells: list[str] = []
        for row in self.rows[2:]:
            cells += row.strip("|").split("|")[1:]
        figures = sum(FIGURE.fullmatch(cell.strip()) is not None for cell in cells)
        return 3 * figures >= len(cells) > 0


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of a text in Markdown."""
    lines = text.splitlines()
    for begins, line in enumerate(lines):
        if line.startswith("|") and not (begins and lines[begins - 1].startswith("|")):
            rows = list(takewhile(lambda row: row.startswith("|"), lines[begins:]))
            yield Table(begins, begins + len(rows), rows, _source(lines, begins))


def _section(lines: Sequence[str], line_number: int) -> tuple[int, int]:
    """Return the first line of the section around a line, and the one behind it."""
    begins = 0
    for number, line in enumerate(lines):
        if re.match(r"#+ \w", line):
            if number > line_number:
                return begins, number
            begins = number
    return begins, len(lines)


def _source(lines: Sequence[str], line_number: int) -> str | None:
    """Return what is named last before a line in its section, else what is named first behind it."""
    begins, ends = _section(lines, line_number)
    before = [*SOURCE.finditer("\n".join(lines[begins:line_number]))]
    named = before[-1] if before else SOURCE.search("\n".join(lines[line_number:ends]))
    return named and next(name for name in named.groups() if name)


def write(script: str, printed: str, page: str, today: date) -> str:
    """Return the text of a page with the tables that a script has printed."""
    lines, made = page.splitlines(), [*tables(printed)]
    shown = [table for table in tables(page) if table.source == script]
    seen: Counter[str] = Counter()
    for table in reversed(shown):  # from below, so that the lines above keep their numbers
        same = [other for other in made if other.head == table.head]
        index = sum(other.head == table.head for other in shown) - 1 - seen[table.head]
        seen[table.head] += 1
        if index < len(same):
            lines[table.begins : table.ends] = same[index].rows
            begins, ends = _section(lines, table.begins)
            lines[begins:ends] = [_DAY.sub(str(today), line) for line in lines[begins:ends]]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run scripts, show what they print, and write it into the pages; 1 if one of them has failed."""
    parser = parser_of("bench.pages", __doc__)
    parser.add_argument("scripts", nargs="*", default=["bench"], help="such as bench.samples; default: bench")
    options = parser.parse_args()
    failed = False
    for script in ["bench.prefixes"] if options.quick else options.scripts:
        command = [sys.executable, "-m", script, *(["--quick"] if options.quick else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        print(done.stdout, flush=True)
        failed |= done.returncode != 0
        for page in PAGES:
            text = write(script, done.stdout, page.read_text("utf-8"), date.today())
            if not options.quick and done.returncode in (0, MISSED):  # else rows may be missing
                page.write_text(text, "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
