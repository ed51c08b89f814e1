"""The page of an evaluation in a browser: what it lists, how it is used, that texts stay texts, and many tasks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from reflective_agents.evals.page import Cell, Point, ResultsPicture, TaskRow, results_page
from tests.viewer.conftest import Shown
from tests.viewer.pictures import small
from tests.viewer.test_page import MARKUP, UNSEEN
from tests.viewer.town_days import day

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
Transcripts = dict[str, dict[str, Any]]
ShowResults = Callable[..., Awaitable[Shown]]


def cell(correct: bool | None = True, *, calls: int = 2, **changes: Any) -> Cell:
    made = Cell(
        answer="x",
        extracted=None,
        correct=correct,
        scores={"em": 0.5},
        status="solved",
        reason="it is over",
        error=None,
        calls=calls,
        cached=0,
        tokens=10 * calls,
        cost=0.001 * calls,
        seconds=0.5,
        at=None,
    )
    return {**made, **changes}  # type: ignore[typeddict-item]


def task(name: str, *cells: Cell | None, question: str = "") -> TaskRow:
    return TaskRow(id=name, question=question or f"Question {name}?", gold="42", cells=list(cells))


def left_behind(name: str, **more: Any) -> dict[str, Any]:
    base = {"id": name, "messages": [], "trials": [], "reflections": [], "shown": {}}
    return {**base, **more}


def picture(tasks: Sequence[TaskRow], runs: Sequence[str] = ("lats",)) -> ResultsPicture:
    points: list[Point] = [(2, 0.25, 0.1, 0.5), (9, 0.5, 0.2, 0.8)]
    return ResultsPicture(
        title="lats on numbers",
        facts="Begun today",
        runs=list(runs),
        figures=[["accuracy", *["50%" for _ in runs]]],
        settings=[("n", "5")],
        curves={"model_calls": [points for _ in runs]},
        tasks=list(tasks),
    )


FOUR = [
    task("a", cell(True, calls=7), question="Which river is the longest?"),
    task("b", cell(False, calls=12)),
    task("c", cell(None, calls=1)),
    task("d", cell(False, calls=0, error="OSError: no disk", answer=None)),
]


@pytest.fixture
def show_results(window: Page, tmp_path: Path) -> ShowResults:
    """Return what shows results, with their transcripts."""

    async def open_page(
        shown: ResultsPicture, transcripts: Transcripts | None = None, width: int = 1280, part: str = ""
    ) -> Shown:
        left, shown = transcripts or {}, deepcopy(shown)  # the page notes in it where the transcripts are
        cells = [(row["cells"][0], left[row["id"]]) for row in shown["tasks"] if row["id"] in left]
        text = results_page(shown, [(first, made) for first, made in cells if first])
        file = tmp_path / "results.html"
        await asyncio.to_thread(file.write_text, text, "utf-8", "replace")
        await window.goto("about:blank")
        seen = Shown(window)
        await window.set_viewport_size({"width": width, "height": 800})
        await window.emulate_media(color_scheme="null", reduced_motion="null")
        await window.goto(file.as_uri() + part)
        await window.wait_for_selector("#panel h2", state="attached")
        return seen

    return open_page


async def ids(shown: Shown) -> list[str]:
    return await shown.page.locator("#rows tbody td.id").all_inner_texts()


@pytest.mark.thorough
async def test_wrong_answers_stand_first_and_any_column_sorts(show_results: ShowResults) -> None:
    shown = await show_results(picture(FOUR))
    assert await ids(shown) == ["d", "b", "c", "a"]
    calls = shown.page.locator("#rows thead button", has_text="calls")
    await calls.click()
    assert await ids(shown) == ["d", "c", "a", "b"]
    await calls.click()
    assert await ids(shown) == ["b", "a", "c", "d"]
    assert await shown.page.locator("th[aria-sort=descending]").inner_text() == "calls ▼"
    await calls.click()
    assert await ids(shown) == ["d", "b", "c", "a"]
    assert shown.complaints == []
    assert len(shown.requests) == 1


async def test_the_list_shows_the_answers_that_counted(show_results: ShowResults) -> None:
    counted = task("a", cell(True, answer="I think so.\nAnswer: Rome", extracted="Rome"))
    shown = await show_results({**picture([counted, FOUR[3]]), "curves": {}})
    answers = shown.page.locator("#rows tbody td:nth-child(4)")
    assert await answers.all_inner_texts() == ["no answer", "Rome"]
    widths = await shown.page.evaluate("[...document.querySelectorAll('#table, .two')].map(it => it.clientWidth)")
    assert widths[0] == widths[1], "without a curve the figures take its place"


async def test_search_and_filter(show_results: ShowResults) -> None:
    shown = await show_results(picture(FOUR))
    await shown.page.fill("#search", "LONGEST river")
    assert await ids(shown) == ["a"]
    assert await shown.page.inner_text("#shown") == "1 of 4 tasks"
    await shown.page.fill("#search", "disk")
    assert await ids(shown) == ["d"]
    await shown.page.fill("#search", "")
    await shown.page.select_option("#which", "wrong or crashed")
    assert await ids(shown) == ["d", "b"]
    await shown.page.select_option("#which", "not measured")
    assert await ids(shown) == ["c"]


async def test_a_task_is_read_in_the_panel_and_by_its_address(show_results: ShowResults) -> None:
    message = {"type": "ai", "content": "It is so.", "tool_calls": [{"name": "look", "args": {"at": "it"}}]}
    trials = [{"trial": 1, "answer": "y", "solved": False, "reward": 0.25}]
    left = left_behind("b", messages=[message], trials=trials, reflections=["Look twice."], shown={"drafts": ["one"]})
    shown = await show_results(picture(FOUR), {"b": left}, part="#task=b")
    panel = shown.page.locator("#panel")
    assert await panel.locator("h2").inner_text() == "b"
    assert await panel.locator("h3").all_inner_texts() == [
        "Question",
        "Right answer",
        "Answer ✗ wrong",
        "Trials (1)",
        "Reflections (1)",
        "Messages (1)",
    ]
    assert "solved: it is over" in await panel.inner_text()
    assert await panel.locator("article .text").all_inner_texts() == ["It is so.", 'look({"at":"it"})']
    assert await panel.locator("dl.terms dd").all_inner_texts() == ["12", "120", "$0.0120", "0.5", "0.50"]
    await panel.locator("summary", has_text="Trial 1: y").click()
    await expect(panel.locator("details dd")).to_have_text(["1", "y", "false", "0.25"])
    await shown.page.focus("#list")
    await shown.press("ArrowDown")
    await panel.locator("h2", has_text="c").wait_for()
    assert await panel.locator("p.soft").inner_text() == "No transcript was kept."
    assert shown.page.url.endswith("#task=c")


@pytest.mark.thorough
async def test_each_sentence_stands_with_what_it_rests_on(show_results: ShowResults) -> None:
    sentences = [
        {"text": "It is <b>round</b>.", "cites": ["1", "2"], "support": "full", "words": "the round moon"},
        {"text": "Good luck!", "cites": [], "support": "no_fact", "words": ""},
    ]
    checked = {"answered": "partly", "sentences": sentences, "left_out": ""}
    unchecked: dict[str, Any] = {"answered": None, "sentences": [], "left_out": "no call was left"}
    left = {name: left_behind(name, shown={"support": made}) for name, made in (("a", checked), ("b", unchecked))}
    shown = await show_results(picture(FOUR), left, part="#task=a")
    panel = shown.page.locator("#panel")
    articles = await panel.locator("article").all_inner_texts()
    assert [" ".join(text.split()) for text in articles] == [
        "It is <b>round</b>. support full cites 1, 2 words the round moon",
        "Good luck! support no fact cites nothing",
    ]
    assert "answered\npartly" in await panel.inner_text()
    assert await panel.locator("details").count() == 0, "it is not listed twice"
    await shown.page.locator("#rows td.id", has_text="b").click()
    await expect(panel.locator("h2")).to_have_text("b")
    assert "no call was left" in await panel.inner_text()
    assert shown.complaints == []


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "mark"), [("tree", "#tree .node[data-id='0']"), ("day", "table.day")])
async def test_tree_and_day_open_as_pages_of_their_own(show_results: ShowResults, kind: str, mark: str) -> None:
    left = left_behind("b", **{kind: small() if kind == "tree" else day("</script><script>window.hacked = 1</script>")})
    shown = await show_results(picture(FOUR), {"b": left}, part="#task=b")
    async with shown.page.expect_popup() as coming:
        await shown.page.click("#panel a")
    opened = await coming.value
    await opened.wait_for_selector(mark)
    assert await opened.evaluate("() => window.hacked ?? null") is None
    await opened.close()
    assert shown.complaints == []


@pytest.mark.thorough
async def test_runs_side_by_side_begin_where_they_differ(show_results: ShowResults) -> None:
    tasks = [
        task("same", cell(False), cell(False)),
        task("differs", cell(True, answer="yes"), cell(False, answer="no")),
        task("alone", cell(True), None),
        task("right", cell(True), cell(True)),
    ]
    shown = await show_results(picture(tasks, ("lats", "react")))
    assert await ids(shown) == ["differs", "alone", "same", "right"]
    heads = await shown.page.locator("#rows thead th").all_inner_texts()
    assert heads[:4] == ["#1", "#2", "id", "question"]
    assert await shown.page.locator("#table thead th").all_inner_texts() == ["", "#1 lats", "#2 react"]
    table, chart = [await shown.page.locator(part).bounding_box() for part in ("#table", "#charts")]
    assert table
    assert chart
    assert chart["x"] > table["x"] + table["width"] / 2, "the chart of two runs is beside their figures"
    await shown.page.locator("#panel .buttons[role=group] button", has_text="react").click()
    await shown.page.locator("#panel .text", has_text="no").wait_for()
    label = await shown.page.get_attribute("svg.curve", "aria-label")
    assert label == (
        "lats: 25.0% solved within 2 model calls a task, 50.0% within 9. "
        "react: 25.0% solved within 2 model calls a task, 50.0% within 9."
    )


@pytest.mark.matrix
@pytest.mark.parametrize("text", [MARKUP, UNSEEN, "__proto__"], ids=["markup", "unseen", "prototype"])
async def test_text_stays_text(show_results: ShowResults, text: str) -> None:
    hostile = task(text or "x", cell(False, answer=text, reason=text, error=text), question=text)
    message = {"type": "ai", "content": text, "tool_calls": [{"name": text, "args": {text: text}}]}
    left = left_behind(
        text, messages=[message], reflections=[text], trials=[{"answer": text}], shown={"drafts": [text]}
    )
    shown = await show_results({**picture([hostile], [text]), "title": text, "settings": [(text, text)]}, {text: left})
    count = "names => names.map(name => document.getElementsByTagName(name).length)"
    assert await shown.page.evaluate(count, ["style", "img", "iframe", "a", "base"]) == [1, 0, 0, 0, 0]
    assert await shown.page.evaluate("() => window.hacked ?? null") is None
    assert shown.complaints == []


@pytest.mark.thorough
async def test_ten_thousand_tasks_need_few_rows(show_results: ShowResults) -> None:
    tasks = [task(str(number), cell(number % 3 > 0, calls=number)) for number in range(10_000)]
    left = {str(number): left_behind(str(number), reflections=[f"lesson {number}"]) for number in range(10_000)}
    shown = await show_results(picture(tasks), left)
    assert await shown.page.inner_text("#shown") == "10,000 of 10,000 tasks"
    assert 10 < await shown.page.locator("#rows tbody tr").count() < 100
    await shown.page.focus("#list")
    await shown.press("End")
    await shown.page.locator("#panel h2", has_text="9998").wait_for()
    assert "9998" in await ids(shown)
    assert await shown.page.locator("#panel .quote").inner_text() == "lesson 9998"
    assert 10 < await shown.page.locator("#rows tbody tr").count() < 100
    await shown.page.fill("#search", "question 777?")
    assert "777" in await ids(shown)
    assert await shown.page.inner_text("#shown") == "10 of 10,000 tasks"


@pytest.mark.thorough
async def test_a_narrow_window_shows_the_list_or_the_task(show_results: ShowResults) -> None:
    shown = await show_results(picture(FOUR), width=400)
    assert await shown.page.locator("#panel").is_hidden()
    await shown.page.locator("#rows td.id", has_text="b").click()
    await shown.page.locator("#panel h2", has_text="b").wait_for()
    assert await shown.page.locator("main").is_hidden()
    wide = "() => document.documentElement.scrollWidth"
    assert await shown.page.evaluate(wide) <= 400
    await shown.page.get_by_role("button", name="Back to the list").click()
    assert await shown.page.locator("#panel").is_hidden()
    assert await shown.page.evaluate(wide) <= 400
