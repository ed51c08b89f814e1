"""Tables of figures in the pages: each says what makes it, and what a script prints goes where it belongs."""

import subprocess
from datetime import date
from pathlib import Path

import pytest

from bench import pages
from bench.options import MISSED
from bench.pages import PAGES, ROOT, Table, tables, write
from tests.test_scripts import SCRIPTS

FIGURES = [
    pytest.param(table, id=f"{page.name}-{table.begins + 1}-{table.source}")
    for page in PAGES
    for table in tables(page.read_text("utf-8"))
    if table.has_figures
]
PAGE = """# Speed

`python -m bench.fast` makes this one. Measured on 2026-01-01.

| way | seconds |
|---|--:|
| there | 1.5 s |

## By hand

Counted by hand on 2026-01-01.

| way | steps |
|---|--:|
| there | 1,200 (about) |
| back | unknown |

## Words

| way | seconds |
|---|--:|
| there | many |

## Twice

| way | seconds |
|---|--:|
| back | 3 |

`python -m bench.fast` makes this one, too: the second of its head.
"""
PRINTED = """
| way | seconds |
|---|--:|
| there | 2 s |
| on | 3 s |

| way | seconds |
|---|--:|
| back | 4 |
"""


def test_a_third_of_the_cells_make_a_table_one_of_figures_and_its_section_says_where_they_come_from() -> None:
    found = [*tables(PAGE)]
    assert [table.has_figures for table in found] == [True, True, False, True]
    assert [table.source for table in found] == ["bench.fast", "by hand on 2026-01-01", None, "bench.fast"]


def test_what_a_script_prints_goes_into_its_own_sections_and_nowhere_else() -> None:
    written = write("bench.fast", PRINTED, PAGE, date(2026, 2, 3))
    assert "| there | 2 s |\n| on | 3 s |\n" in written
    assert "| back | 4 |" in written
    assert "Measured on 2026-02-03" in written
    assert "Counted by hand on 2026-01-01." in written
    assert "| there | 1,200 (about) |" in written
    assert "| there | many |" in written
    assert write("bench.slow", PRINTED, PAGE, date(2026, 2, 3)) == PAGE


@pytest.mark.parametrize(("code", "written"), [(0, True), (MISSED, True), (1, False)])
def test_what_a_script_printed_that_crashed_is_not_written(
    code: int, written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    monkeypatch.setattr(pages, "PAGES", [page])
    monkeypatch.setattr("sys.argv", ["pages", "bench.fast"])
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, code, PRINTED))
    assert pages.main() == int(code != 0)
    assert (page.read_text() != PAGE) == written


@pytest.mark.parametrize("table", FIGURES)
def test_every_table_of_figures_names_what_makes_it(table: Table) -> None:
    source = table.source
    assert source, f"its section names no command, no test and no date: {table.head}"
    assert source in SCRIPTS or (ROOT / source).is_file() or source.startswith("by hand on ")
