"""The live page on the development server, in a real browser: watched, joined late, steered, and continued."""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, FrameLocator, Page, expect

from tests.serve import live
from tests.viewer.conftest import browser, chromium
from tests.viewer.test_page import MARKUP

pytestmark = [
    pytest.mark.studio,
    pytest.mark.browser,
    pytest.mark.xdist_group("studio"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(600),
]
__all__ = ["browser", "chromium"]
PATIENCE = 120_000
LOOKS: dict[int, Literal["light", "dark"]] = {400: "light", 1400: "dark"}
"""Schemes by the width of the window."""
AXE = {
    "lats": {"n": "2", "max_expansions": "1"},
    "town": {"max_steps": "3", "model": "offline"},
    "reflection": {"max_rounds": "1"},
}


class Look:
    """A window with the live page, and what it complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    @property
    def tree(self) -> FrameLocator:
        return self.page.frame_locator("#tree")

    async def ask(self, question: str, **settings: str) -> None:
        await expect(self.page.locator("#strategy option")).not_to_have_count(0, timeout=PATIENCE)
        await self.page.fill("#question", question)
        await self.page.click("#ask summary")
        for name, value in settings.items():
            group = self.page.locator("details.group", has=self.page.locator(f"#setting-{name}"))
            if await group.get_attribute("open") is None:
                await group.locator("summary").click()
            await self.page.fill(f"#setting-{name}", value)
        await self.page.click("#ask summary")
        await self.page.click("#send")

    async def says(self, text: str) -> None:
        await expect(self.page.locator("#state")).to_contain_text(text, timeout=PATIENCE)

    async def has(self, nodes: int) -> None:
        await expect(self.tree.locator(".node[data-id]")).to_have_count(nodes, timeout=PATIENCE)

    async def choose(self, node: str) -> None:
        await self.tree.locator(f"[id='node-{node}'] .shape").click()
        await expect(self.page.locator("#selected")).to_have_text(f"Node {node}", timeout=PATIENCE)


@pytest_asyncio.fixture(loop_scope="session")
async def look(browser: Browser, address: str) -> AsyncIterator[Look]:
    context = await browser.new_context(viewport={"width": 1400, "height": 900})
    page = await context.new_page()
    await page.goto(f"{address}/live")
    yield Look(page)
    await context.close()


async def joined(look: Look) -> Look:
    """Open what a window shows in another one."""
    page = await look.page.context.new_page()
    await page.goto(look.page.url)
    return Look(page)


@pytest.mark.thorough
async def test_a_run_is_watched_joined_late_steered_and_continued(look: Look) -> None:
    await look.ask("A slow and unsolvable question", n="2", max_expansions="3")
    await look.has(1)
    await look.says("running")
    await look.has(3)
    late = await joined(look)
    await late.has(3)
    await look.page.click("[data-do=pause]")
    await look.says("paused")
    await look.choose("0.1")
    await look.page.click("[data-do=prune]")
    await look.says("ended: limit reached")
    await look.has(7)
    await expect(look.tree.locator(".node.pruned[data-id]")).to_have_count(1, timeout=PATIENCE)
    await look.ask("Another unsolvable question", max_expansions="1")
    await expect(look.page.locator("#said > li")).to_have_count(4, timeout=PATIENCE)
    assert (look.complaints, late.complaints) == ([], [])


@pytest.mark.thorough
async def test_the_second_of_two_people_is_told(look: Look) -> None:
    await look.ask("An unsolvable question", n="2", max_expansions="2")
    await look.says("ended")
    other = await joined(look)
    await other.says("ended")
    await look.choose("0.1")
    await other.choose("0.0")
    await look.page.click("[data-do=prune]")
    await expect(look.tree.locator(".node.pruned[data-id]")).to_have_count(1, timeout=PATIENCE)
    await other.page.click("[data-do=prune]")
    await expect(other.page.locator("#problem")).to_contain_text("somebody else", timeout=PATIENCE)
    await expect(other.tree.locator(".node.pruned[data-id]")).to_have_count(1, timeout=PATIENCE)


@pytest.mark.thorough
@pytest.mark.matrix
@pytest.mark.parametrize("strategy", ["reflection", "lats", "town"])
async def test_texts_stay_texts(look: Look, strategy: str) -> None:
    await expect(look.page.locator("#strategy option")).not_to_have_count(0, timeout=PATIENCE)
    await look.page.select_option("#strategy", strategy)
    await look.ask(MARKUP, **({"max_steps": "2", "model": "offline"} if strategy == "town" else {}))
    await look.says("ended")
    for frame in look.page.frames:
        names = ["img", "iframe", "a", "base", "svg[onload]"]
        counts = await frame.evaluate("names => names.map(name => document.querySelectorAll(name).length)", names)
        assert counts == [0, int(frame is look.page.main_frame), 0, 0, 0]
        assert await frame.evaluate("() => window.hacked ?? null") is None
    shown = {"lats": look.tree.locator("#question"), "reflection": look.page.locator("#lists")}
    await expect(shown.get(strategy, look.tree.locator("#told"))).to_contain_text("window.hacked", timeout=PATIENCE)
    assert "<script>" in await look.page.inner_text("#said")
    assert look.complaints == []


@pytest.mark.thorough
async def test_axe_finds_nothing_and_nothing_is_cut_off(browser: Browser, address: str) -> None:
    """On the page with a tree, with the day of a town and with lists, and in the views of the first two."""
    context = await browser.new_context(bypass_csp=True)
    look = Look(await context.new_page())
    await look.page.goto(f"{address}/live")
    for strategy, settings in AXE.items():
        await look.page.click("#new")
        await look.page.select_option("#strategy", strategy)
        await look.ask("An unsolvable question", **settings)
        await look.says("ended")
        frames = [look.page.main_frame]
        if strategy != "reflection":
            await look.tree.locator(".node[data-id], .moment").nth(2).wait_for()
            frames.insert(0, look.page.frames[-1])
        await look.page.click("#ask summary")
        for width, scheme in LOOKS.items():
            await look.page.set_viewport_size({"width": width, "height": 900})
            await look.page.emulate_media(color_scheme=scheme)
            for frame in frames:
                found = (await Axe().run(frame)).response["violations"]
                assert [(violation["id"], violation["nodes"][0]["html"]) for violation in found] == []
                assert await frame.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        await look.page.click("#ask summary")
    await context.close()


@pytest.mark.thorough
async def test_everything_is_reached_by_keys(look: Look) -> None:
    await expect(look.page.locator("#strategy option")).not_to_have_count(0, timeout=PATIENCE)
    await look.page.focus("#ask summary")
    await look.page.keyboard.press("Enter")
    await look.page.focus("#setting-max_expansions")
    await look.page.keyboard.type("1")
    await look.page.focus("#question")
    await look.page.keyboard.type("An unsolvable question")
    await look.page.keyboard.press("Control+Enter")
    await look.says("ended")
    await look.tree.locator("#tree").focus()
    await look.page.keyboard.press("Home")
    await look.page.keyboard.press("ArrowRight")
    await expect(look.page.locator("#selected")).to_have_text("Node 0.0", timeout=PATIENCE)
    reached: list[str] = []
    while "prune" not in reached and len(reached) < 40:
        await look.page.keyboard.press("Shift+Tab")
        reached.append(await look.page.evaluate("document.activeElement.dataset.do ?? document.activeElement.id"))
    await look.page.keyboard.press("Enter")
    await expect(look.tree.locator(".node.pruned[data-id]")).to_have_count(1, timeout=PATIENCE)
    await look.page.focus("#key-part summary")
    await look.page.keyboard.press("Enter")
    await look.page.focus("#new")
    for _ in range(120):
        reached.append(await look.page.evaluate("document.activeElement.dataset.do ?? document.activeElement.id"))
        await look.page.keyboard.press("Tab")
    wanted = {"stop", "more", "fork", "step", "prune", "rescore", "score", "hint", "hint-text", "tree", "send", "said"}
    assert wanted | {"key", "question"} <= {*reached}


@pytest.mark.thorough
async def test_every_button_does_what_it_says(look: Look) -> None:
    page = look.page

    async def done(button: str, nodes: int, *kinds: str) -> None:
        """Press a button, and hold the tree that comes of it, and the newest entries of its history."""
        await page.click(f"[data-do={button}]")
        await expect(look.tree.locator("#status")).to_contain_text(f", {kinds[-1]} ", timeout=PATIENCE)
        await look.says("ended")
        await look.has(nodes)
        answer = await page.request.get(f"{page.url.partition('#')[0]}/threads/{page.url.partition('#')[2]}")
        frames = [frame["event"] for frame in (await answer.json())["tree"]["frames"]]
        assert frames[-len(kinds) :] == [*kinds]

    await look.ask("An unsolvable question", n="2", max_expansions="2")
    await look.says("ended")
    await look.has(5)
    await look.choose("0.0")
    await page.fill("#score", "0.75")
    await done("rescore", 5, "rescore")
    await expect(look.tree.locator("[data-figure=score] dd").first).to_have_text("0.75")
    await page.fill("#hint-text", "Compare it with <b>UCB1</b>.")
    await done("hint", 5, "hint")
    await done("more", 15, "more", *["expand"] * 5)
    await done("prune", 15, "prune")
    await done("stop", 15, "stop")
    await page.fill("#step", "2")
    await done("fork", 5, "start", "expand", "expand")
    assert look.complaints == []


@pytest.mark.thorough
async def test_a_run_is_paused_and_resumed_by_buttons(look: Look) -> None:
    await look.ask("A slow and unsolvable question", n="2", max_expansions="2")
    await look.has(3)
    await look.page.click("[data-do=pause]")
    await look.says("paused")
    await expect(look.page.locator("[data-do=pause]")).to_be_disabled()
    await look.page.click("[data-do=resume]")
    await look.says("running")
    await look.says("ended: limit reached")
    await look.has(5)
    assert look.complaints == []


@pytest.mark.thorough
async def test_the_day_of_a_town_is_drawn_while_it_goes_on(look: Look) -> None:
    news = "Anna gives a garden party at the Caf\u00e9 today at 17:00."
    await expect(look.page.locator("#strategy option")).not_to_have_count(0, timeout=PATIENCE)
    await look.page.select_option("#strategy", "town")
    await look.ask(news, max_steps="4", model="offline")
    await expect(look.tree.locator("#facts")).to_contain_text("4 steps", timeout=PATIENCE)
    await look.says("ended: limit reached")
    late = await joined(look)
    for window in (look, late):
        await expect(window.tree.locator("#news .chip")).to_contain_text(["Anna", "Anna \u2192 Ben", "does not know"])
        await expect(window.tree.locator(".day tbody tr")).to_have_count(3)
        await expect(window.page.locator("[data-do=prune]")).to_be_hidden()
    assert (look.complaints, late.complaints) == ([], [])


@pytest.mark.thorough
async def test_requests_of_the_page(address: str) -> None:
    async with live.browser(address) as client:
        await asyncio.gather(
            live.early_and_late_hear_the_same(client),
            live.steered_by_two(client),
            live.the_list_tells_what_runs_are_and_a_question_is_edited(client),
        )
