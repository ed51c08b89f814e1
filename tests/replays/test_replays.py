"""The recorded runs give the published figures here, and the page of the figures says so."""

from pathlib import Path

import pytest

from bench.replays.catalogue import HEAD, LONG, PAGE, REPLAYS, SANDBOXED, TAIL, row, section
from bench.replays.measured import UNEXPLAINED
from bench.replays.records import manifest

SHORT = ("tot_text_votes",)
"""What takes a second. The others are left to `make test-all`."""


def marks(name: str) -> list[pytest.MarkDecorator]:
    sandbox = [pytest.mark.sandbox] if name in SANDBOXED else []
    thorough = [] if name in SHORT else [pytest.mark.thorough]
    return [*sandbox, *thorough, *([pytest.mark.published] if name in LONG else [])]


EVERY = [pytest.param(name, marks=marks(name)) for name in REPLAYS | SANDBOXED]


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", EVERY)
async def test_the_published_figures(name: str, recorded: Path) -> None:
    known = manifest(recorded)[name]
    published = known["expected"]["dev"]
    measured = await (REPLAYS | SANDBOXED)[name](recorded, name)
    assert [miss for answers in measured.served for miss in answers.misses] == []
    assert [left for answers in measured.served for left in answers.unserved] == []
    assert [why for why in measured.differences if UNEXPLAINED in why] == []
    assert measured.as_published() == {figure: published[figure] for figure in measured.figures}
    page = PAGE.read_text(encoding="utf-8")
    assert row(name, known, measured) in page.split("\n")
    assert section(name, measured) in page


def test_the_page_tells_nothing_else() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    assert TAIL in page
    lines = page.removeprefix(HEAD).partition(TAIL)[0].splitlines()
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines] == [*REPLAYS, *SANDBOXED]


def test_the_page_names_every_recorded_file(recorded: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in manifest(recorded) if not name.startswith("bench_") and name not in page] == []
