"""The recorded runs give the published figures here, and the page of the figures says so."""

from pathlib import Path

import pytest

from tests.replays.catalogue import HEAD, PAGE, REPLAYS, SANDBOXED, TAIL, row, section
from tests.replays.measured import UNEXPLAINED
from tests.replays.records import manifest

SLOW = ("react", "tot_game24_bfs", "tot_crosswords")
EVERY = [
    *(pytest.param(name, marks=pytest.mark.slow if any(slow in name for slow in SLOW) else ()) for name in REPLAYS),
    *(pytest.param(name, marks=[pytest.mark.slow, pytest.mark.sandbox]) for name in SANDBOXED),
]


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
