"""Pages that are told of a search, or a day, while it goes on: what has not changed is left alone."""

import logging
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, CDPSession, Page, Route, expect

from reflective_agents.town.page import TownPicture, town_page
from reflective_agents.viewer.page import page as tree_page
from reflective_agents.viewer.picture import Picture
from tests.viewer.conftest import Shown
from tests.viewer.pictures import grown
from tests.viewer.town_days import day

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PACKAGE = Path(__file__).parents[2] / "reflective_agents"
SIZE = 1000
UPDATES = 15
# The page posts to the page around it, which is the same window here.
DEAF = """window.addEventListener("message", (event) => {
  const { ready, selected } = Object(event.data);
  if (ready || selected !== undefined) event.stopImmediatePropagation();
})"""
POST = "show => window.postMessage({ show }, location.origin)"
WATCH = """() => {
  window.touched = new Set();
  new MutationObserver((records) => {
    for (const { target, addedNodes } of records) {
      window.touched.add(target.nodeType === 3 ? target.parentElement : target);
      for (const one of addedNodes) window.touched.add(one);
    }
  }).observe(document.documentElement, { subtree: true, childList: true, attributes: true, characterData: true });
}"""
DRAWN = """() => {
  const parts = document.querySelectorAll(".node[data-id], #links path, #panel, #status, #facts, #chart path");
  const names = ["id", "d", "aria-label", "class", "aria-expanded"];
  const place = ({ x, y }) => [Math.round(x), Math.round(y)];
  return [...parts].map((one) =>
    [...names.map((name) => one.getAttribute(name)), one.textContent, ...place(one.getBoundingClientRect())]);
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def waiting(browser: Browser) -> AsyncIterator[Shown]:
    """Return a window with the page of a tree that waits for one, and at /day with that of a day."""
    context = await browser.new_context(viewport={"width": 900, "height": 800})
    page = await context.new_page()
    await page.add_init_script(DEAF)

    async def answer(route: Route) -> None:
        html = town_page(None) if route.request.url.endswith("/day") else tree_page(None)
        await route.fulfill(body=html, content_type="text/html")

    await page.route("http://here/*", answer)
    shown = Shown(page)
    await page.goto("http://here/tree")
    page.set_default_timeout(20_000)
    yield shown
    await context.close()
    assert shown.complaints == []


def beginning(picture: Picture, frames: int) -> dict[str, Any]:
    """Return what a page is told at first: a search with so many frames."""
    kept = picture["frames"][:frames]
    nodes = {key: picture["nodes"][key] for frame in kept for key in frame["added"]}
    return {**picture, "nodes": nodes, "frames": kept, "path": [], "from": 0}


def news(picture: Picture, frames: int) -> Iterator[dict[str, Any]]:
    """Yield what a page is told after so many frames, frame by frame."""
    for index, frame in enumerate(picture["frames"][frames:], frames):
        nodes = {key: picture["nodes"][key] for key in frame["added"]}
        yield {**picture, "nodes": nodes, "frames": [frame], "path": [], "from": index}


async def seconds(session: CDPSession) -> dict[str, float]:
    """Return the seconds that a page has spent so far, by what on."""
    metrics = (await session.send("Performance.getMetrics"))["metrics"]
    wanted = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "TaskDuration")
    return {metric["name"]: metric["value"] for metric in metrics if metric["name"] in wanted}


async def settled(page: Page, frames: int) -> None:
    await page.wait_for_function(
        "text => document.querySelector('#status').textContent.startsWith(text)", arg=f"Step {frames} of {frames},"
    )


@pytest.mark.thorough
async def test_messages_of_others_are_passed_over(waiting: Shown) -> None:
    others: list[object] = ["axe.ping", 1, {"nodes": {}}]
    for other in others:
        await waiting.page.evaluate("other => window.postMessage(other, location.origin)", other)
    await waiting.page.evaluate(POST, beginning(grown(20), 3))
    await settled(waiting.page, 3)


def events(picture: Picture) -> Iterator[dict[str, Any]]:
    """Yield what a run tells of a search while it grows."""
    numbers = count(1)
    for frame in picture["frames"]:
        stats = {key: [own["visits"], own["total"]] for key, own in frame["stats"].items()}
        for key in frame["added"]:
            yield {"seq": next(numbers), "event": "node", **picture["nodes"][key]}
        spent = {"calls": frame["calls"], "tokens": frame["tokens"]}
        yield {
            "seq": next(numbers),
            "event": "visited",
            "node": frame["node"],
            "kind": "expand",
            "stats": stats,
            **spent,
        }
        for key in frame["pruned"]:
            yield {"seq": next(numbers), "event": "pruned", "node": key}


@pytest.mark.thorough
async def test_only_what_events_have_changed_is_told(waiting: Shown) -> None:
    """The live page tells the view everything once, then of each event only what is new; together that is all."""
    script = (PACKAGE / "serve" / "page" / "growing.js").read_text()
    counts, whole, together, usage = await waiting.page.evaluate(
        f"""(events) => {{
          {script}
          const growing = new Growing(null, 0, "");
          const counts = [];
          const [nodes, frames] = [{{}}, []];
          for (const event of events) {{
            growing.take(event);
            const news = growing.news();
            counts.push(Object.keys(news.nodes).length);
            Object.assign(nodes, news.nodes);
            frames.splice(news.from, Infinity, ...news.frames);
          }}
          growing.take({{ seq: 10 ** 6, event: "parse_failed", model_calls: 7, total_tokens: 99 }});
          const {{ nodes: allNodes, frames: allFrames, usage }} = growing.news(true);
          return [counts, [allNodes, allFrames], [nodes, frames], usage];
        }}""",
        [*events(grown(200))],
    )
    assert len(whole[0]) == 200
    assert together == whole
    assert max(counts) == 1
    assert usage == {"model_calls": 7, "total_tokens": 99}


@pytest.mark.thorough
@pytest.mark.parametrize(("unfolded", "most"), [(False, 60), (True, 300)], ids=["folded", "unfolded"])
async def test_an_update_of_a_thousand_nodes_touches_only_what_has_changed(
    waiting: Shown, unfolded: bool, most: int
) -> None:
    picture = grown(SIZE)
    begin = len(picture["frames"]) - UPDATES
    await waiting.page.evaluate(POST, beginning(picture, begin))
    await settled(waiting.page, begin)
    if unfolded:
        await waiting.page.click("[data-does=unfold]")
    await waiting.page.evaluate(WATCH)
    session = await waiting.page.context.new_cdp_session(waiting.page)
    await session.send("Performance.enable")
    before, counts = await seconds(session), []
    for number, update in enumerate(news(picture, begin), begin + 1):
        await waiting.page.evaluate("() => touched.clear()")
        await waiting.page.evaluate(POST, update)
        await settled(waiting.page, number)
        counts.append(await waiting.page.evaluate("() => touched.size"))
    spent = {name: (now - before[name]) / UPDATES for name, now in (await seconds(session)).items()}
    milliseconds = {name: round(1000 * value, 1) for name, value in spent.items()}
    logging.getLogger(__name__).info("%d nodes, elements touched: %s, ms: %s", SIZE, sorted(counts), milliseconds)
    assert sorted(counts)[len(counts) // 2] <= most


@pytest.mark.thorough
async def test_a_tree_that_has_grown_looks_like_one_that_is_drawn_whole(waiting: Shown) -> None:
    picture = grown(80)
    frames = len(picture["frames"])
    await waiting.page.evaluate(POST, beginning(picture, 3))
    for number, update in enumerate(news(picture, 3), 4):
        await waiting.page.evaluate(POST, update)
        await settled(waiting.page, number)
    await waiting.press("u", "0")
    by_and_by = await waiting.page.evaluate(DRAWN)
    await waiting.page.reload()
    await waiting.page.evaluate(POST, beginning(picture, frames))
    await settled(waiting.page, frames)
    await waiting.press("u", "0")
    whole = await waiting.page.evaluate(DRAWN)
    assert sorted(by_and_by, key=str) == sorted(whole, key=str)


@pytest.mark.thorough
async def test_what_is_open_in_the_panel_stays_open_while_the_tree_grows(waiting: Shown) -> None:
    picture = grown(60)
    await waiting.page.evaluate(POST, beginning(picture, 5))
    await settled(waiting.page, 5)
    await waiting.page.click("[data-block=Run] summary")
    for number, update in enumerate(news(picture, 5), 6):
        await waiting.page.evaluate(POST, update)
        await settled(waiting.page, number)
    assert await waiting.page.get_attribute("[data-block=Run]", "open") is not None
    assert await waiting.page.evaluate("() => document.activeElement.textContent") == "The whole run"
    assert await waiting.figure("N") == str(picture["frames"][-1]["stats"]["0"]["visits"])


@pytest.mark.thorough
async def test_changes_of_a_tree_that_was_not_told_yet_are_waited_out(waiting: Shown) -> None:
    picture = grown(20)
    await waiting.page.evaluate(POST, next(news(picture, 2)))
    await waiting.page.evaluate(POST, beginning(picture, 3))
    await settled(waiting.page, 3)


def until(picture: TownPicture, step: int) -> dict[str, Any]:
    """Return a day as it was after a step."""
    whole: dict[str, Any] = {**picture}

    def past(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in rows if row["step"] <= step]

    kept = {name: past(whole[name]) for name in ("day", "conversations", "retrievals")}
    agents = [{**agent, "memories": past(agent["memories"])} for agent in whole["agents"]]
    return {**whole, **kept, "agents": agents, "spread": [] if step < 2 else whole["spread"]}


@pytest.mark.thorough
async def test_a_day_grows_and_what_is_selected_stays_so(waiting: Shown) -> None:
    page = waiting.page
    await page.goto("http://here/day")
    for step in (1, 2, 3):
        await page.evaluate(POST, until(day(), step))
        await expect(page.locator("#facts")).to_contain_text(f"{step} step")
        if step == 1:
            await page.locator(".moment").nth(1).click()
            await page.locator("#whose button", has_text="Ben").click()
    assert await page.locator(".moment").all_inner_texts() == ["Café\ndrinks coffee", "House\ndrinks coffee"] * 2
    label = await page.get_attribute(".moment[aria-current]", "aria-label")
    assert label == "Ben, 07:00 to 07:30, House: drinks coffee"
    assert await page.locator("#memories tbody tr").count() == 3
    assert await page.locator("#talks details").count() == 1
