"""What axe-core finds on each kind of page, in light and dark: nothing. And what has room uses it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page

from reflective_agents.town.page import town_page
from reflective_agents.viewer.items import items_page
from reflective_agents.viewer.page import page
from tests.evals.test_report import made
from tests.viewer.pictures import filled_with, grown, small
from tests.viewer.test_items_page import CONTESTED, REFINED
from tests.viewer.town_days import day

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
LONG = "A sentence that says much. " * 40
PAGES: dict[str, Callable[[], str]] = {
    "tree": lambda: page(grown(40)),
    "long texts": lambda: page(filled_with(LONG)),
    "day": lambda: town_page(day()),
    "evaluation": made,
    "experience": lambda: items_page("Experience chess", [CONTESTED, REFINED]),
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def open_window(browser: Browser) -> AsyncIterator[Page]:
    """Return a window into which axe-core may be put, though the pages' own policy forbids foreign scripts."""
    context = await browser.new_context(bypass_csp=True)
    yield await context.new_page()
    await context.close()


async def shown(window: Page, text: str, folder: Path, width: int = 1400) -> None:
    file = folder / "page.html"
    file.write_text(text, "utf-8", errors="replace")
    await window.set_viewport_size({"width": width, "height": 900})
    await window.goto(file.as_uri())


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
async def test_axe_finds_nothing(
    open_window: Page, name: str, scheme: Literal["light", "dark"], tmp_path: Path
) -> None:
    await open_window.emulate_media(color_scheme=scheme)
    await shown(open_window, PAGES[name](), tmp_path)
    found = await Axe().run(open_window)
    assert [(violation["id"], violation["nodes"][0]["html"]) for violation in found.response["violations"]] == []


@pytest.mark.thorough
async def test_labels_use_the_room_there_is(open_window: Page, tmp_path: Path) -> None:
    widths = []
    for width in (700, 1400):
        await shown(open_window, page(small()), tmp_path, width)
        widths.append(await open_window.evaluate("document.querySelector('.ring').getBoundingClientRect().width"))
    assert widths[1] > 1.5 * widths[0]


@pytest.mark.thorough
async def test_a_day_fits_the_window(open_window: Page, tmp_path: Path) -> None:
    await shown(open_window, town_page(day()), tmp_path)
    table, width = await open_window.evaluate(
        "(() => { const day = document.querySelector('.day');"
        " return [day.getBoundingClientRect().width, day.parentElement.clientWidth]; })()"
    )
    assert table <= width
