"""Pages in a real browser: one headless Chromium for all tests."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from reflective_agents.viewer.page import page as html_of
from reflective_agents.viewer.picture import Picture
from tests.support.needs import BROWSERS

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Shown:
    """A page that is shown, with what it complained about and what it asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            await self.page.keyboard.press(key)

    async def visible(self) -> list[str]:
        """Ids of the nodes that can be seen, in reading order."""
        script = "all => all.filter(one => one.getBoundingClientRect().width).map(one => one.dataset.id)"
        found: list[str] = await self.page.eval_on_selector_all(".node[data-id]", script)
        return found

    async def selected(self) -> str:
        """Id of the selected node, which assistive technology is told of, too."""
        active = await self.page.get_attribute("#tree", "aria-activedescendant")
        marked = await self.page.get_attribute(".node.selected[aria-selected=true]", "id")
        assert active == marked
        return str(active).removeprefix("node-")

    async def figure(self, name: str) -> str:
        """What the panel says of a figure."""
        return await self.page.inner_text(f"[data-figure='{name}'] dd >> nth=0")

    async def box(self, key: str) -> dict[str, float]:
        """Where the sign of a node is on the screen."""
        script = "one => JSON.parse(JSON.stringify(one.getBoundingClientRect()))"
        found: dict[str, float] = await self.page.eval_on_selector(f"[id='node-{key}'] > .shape", script)
        return found

    async def click(self, key: str) -> None:
        """Click on a node."""
        box = await self.box(key)
        await self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


Show = Callable[..., Awaitable[Shown]]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the browser. Who uses it is marked `browser`."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    assert found, f"none of {', '.join(BROWSERS)} is there, or the test is not marked `browser`"
    return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """Return the one browser of all tests."""
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        await launched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def window(browser: Browser) -> Page:
    """Return the one window, in which all pages are shown, one after the other."""
    opened = await browser.new_page()
    opened.set_default_timeout(20_000)
    return opened


@pytest.fixture
def show(window: Page, tmp_path: Path) -> Show:
    """Return what shows a picture, in a window of a size and with preferences of the user's."""

    async def open_page(picture: Picture, width: int = 1280, height: int = 800, **preferences: Any) -> Shown:
        shown = Shown(window)
        await window.set_viewport_size({"width": width, "height": height})
        await window.emulate_media(**{"color_scheme": "null", "reduced_motion": "null", **preferences})
        file = tmp_path / "page.html"
        await asyncio.to_thread(file.write_text, html_of(picture), "utf-8")
        await window.goto(file.as_uri())
        return shown

    return open_page
