"""An evaluation, or several side by side, as one page of HTML that needs nothing else, made as the page of a search is:
see `viewer.page`.

The list of the tasks lies in the page as JSON. Their transcripts are packed, and unpacked when one is looked at; a tree
or a day becomes a page of its own then, which the script makes of the template that the page holds once.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator

from typing_extensions import TypedDict

from reflective_agents.state.json_types import JsonMapping
from reflective_agents.town.page import DAY
from reflective_agents.viewer.page import TREE, VIEWER, Page, assets, embedded

_RESULTS = Page(
    VIEWER / "results.html",
    "Evaluation",
    styles=assets(VIEWER, "results-panel.css", "results.css"),
    scripts=assets(
        VIEWER, "elements.js", "results-data.js", "results-list.js", "results-panel.js", "results-charts.js"
    ),
)
PACK = 200_000
"""Characters of transcripts that are packed together: many, since prompts repeat, and few enough to open at once."""
MOST_PACKED = 100_000_000
"""Characters of all packs; what does not fit into them loses its tree and day first."""
DROPPED = "Its tree or day is left out: the page would be too large. Make a page of fewer tasks with --limit."


class Cell(TypedDict):
    """What came of a task in a run. `at` says in which pack, and where in it, its transcript lies."""

    answer: str | None
    extracted: str | None
    correct: bool | None
    scores: dict[str, float]
    status: str | None
    reason: str
    error: str | None
    calls: int | None
    cached: int
    tokens: int | None
    cost: float | None
    seconds: float
    at: tuple[int, int] | None


class TaskRow(TypedDict):
    """A task, and what came of it in each run; None where it was not run."""

    id: str
    question: str
    gold: str | None
    cells: list[Cell | None]


Point = tuple[float, float, float, float]
"""So much was spent; the share of the tasks solved for that, and its interval."""


class ResultsPicture(TypedDict):
    """What there is to see: `figures` are rows with one value a run, `curves` points of each run by what is spent."""

    title: str
    facts: str
    runs: list[str]
    figures: list[list[str]]
    settings: list[tuple[str, str]]
    curves: dict[str, list[list[Point]]]
    tasks: list[TaskRow]


def results_page(picture: ResultsPicture, transcripts: Iterable[tuple[Cell, JsonMapping]] = ()) -> str:
    """Build the page.

    Args:
        picture: What there is to see.
        transcripts: Those of the cells, the ones that matter most first. Each is noted in its cell.
    """
    packs = "\n".join(
        f'<script type="application/octet-stream" id="pack-{number}">{pack}</script>'
        for number, pack in enumerate(_packs(transcripts))
    )
    templates = {"tree": TREE.halves, "day": DAY.halves}
    pages = {name: _packed(_plain(halves)) for name, halves in templates.items()}
    return _RESULTS.html(
        TREE,
        DAY,
        packs=packs,
        results=embedded(picture),
        pages=json.dumps(pages),
    )


def _packs(transcripts: Iterable[tuple[Cell, JsonMapping]]) -> Iterator[str]:
    """Pack transcripts, and note in each cell where its own lies."""
    waiting: list[str] = []
    size = number = taken = 0
    for cell, transcript in transcripts:
        # Noted before the list of the tasks is written into the page, which `results_page` does after this.
        cell["at"] = (number, len(waiting))
        waiting.append(_plain(transcript if taken < MOST_PACKED else _without_pages(transcript)))
        size += len(waiting[-1])
        if size > PACK:
            pack = _packed(f"[{','.join(waiting)}]")
            yield pack
            number, size, taken, waiting = number + 1, 0, taken + len(pack), []
    if waiting:
        yield _packed(f"[{','.join(waiting)}]")


def _without_pages(transcript: JsonMapping) -> JsonMapping:
    if not {"tree", "day"} & transcript.keys():
        return transcript
    smaller = {name: value for name, value in transcript.items() if name not in ("tree", "day")}
    return {**smaller, "dropped": DROPPED}


def _plain(value: JsonMapping | tuple[str, str]) -> str:
    """Return data as JSON in ASCII, in which a lone surrogate is its escape."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str)


def _packed(text: str) -> str:
    return b64encode(zlib.compress(text.encode(), 6)).decode()
