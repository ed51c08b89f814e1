"""The eight tasks beside other libraries: what this environment has is run, and the page shows what is counted."""

import pytest

from bench.pages import ROOT, tables
from bench.peers.lines.__main__ import LIBRARIES, NO_WAY, Library, count, do_tasks
from bench.peers.lines.tasks import TASKS

HERE = [library for library in LIBRARIES if not library.peer]


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.parametrize("library", HERE, ids=lambda library: library.module)
def test_a_library_does_every_task(library: Library) -> None:
    done = {name: cell.partition(" (")[0] for name, cell in do_tasks(library).items()}
    assert done == {name: str(lines) for name, lines in count(library.module).items()}


def test_the_page_shows_the_lines_that_are_counted() -> None:
    page = (ROOT / "docs/peers.md").read_text("utf-8")
    shown = next(table for table in tables(page) if table.source == "bench.peers.lines")
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in shown.rows[2:]]
    columns = [count(library.module) for library in LIBRARIES]
    lines = [[cell.partition(" (")[0] for cell in row] for row in cells]
    assert lines == [[task.what, *(str(column.get(task.name, NO_WAY)) for column in columns)] for task in TASKS]
