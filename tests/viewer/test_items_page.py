"""The page of what runs have learned, in a browser: what it lists, its search, and that texts stay texts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from reflective_agents.state.experience import Item, new_item
from reflective_agents.viewer.items import items_page
from tests.viewer.conftest import Shown
from tests.viewer.test_page import MARKUP, UNSEEN

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
ShowItems = Callable[[Sequence[Item]], Awaitable[Shown]]


def item(number: int, title: str, **changes: object) -> Item:
    made = new_item(f"{number:032}", title, f"tasks {number}", f"Do {number}.", kind="success", created=0.0)
    return {**made, **changes}  # type: ignore[typeddict-item]


REFINED = item(
    1,
    "Labels",
    seen=3,
    solved=2,
    failed=1,
    last_shown=10.0,
    history=[{"at": 86_400.0, "what": "refined", "before": {}, "after": {"advice": "Leave out years."}}],
)
CONTESTED = item(2, "Donors", status="contested", against=[REFINED["id"], "f" * 32])


@pytest.fixture
def show_items(window: Page, tmp_path: Path) -> ShowItems:
    async def open_page(items: Sequence[Item]) -> Shown:
        shown, file = Shown(window), tmp_path / "page.html"
        await asyncio.to_thread(file.write_text, items_page("Experience chess", items), "utf-8")
        await window.goto(file.as_uri())
        return shown

    return open_page


async def test_an_item_shows_its_counts_its_history_and_what_it_contradicts(show_items: ShowItems) -> None:
    shown = await show_items([CONTESTED, REFINED])
    await expect(shown.page.locator("#facts")).to_have_text("2 items, 1 of them contested")
    first, second = (shown.page.locator("details").nth(index) for index in range(2))
    counts = "active · from a success of 1970-01-01 · drawn 3 times · shown in 2 solved and 1 failed run"
    await expect(second.locator("small")).to_have_text(counts)
    await first.locator("summary").click()
    await expect(first.locator("dd").nth(2)).to_contain_text("(forgotten)")
    await first.get_by_role("link", name="Labels").click()
    await expect(second).to_have_attribute("open", "")
    await expect(second).to_contain_text("refined 1970-01-02: Leave out years.")
    assert shown.complaints == []
    assert all(url.startswith("file:///") for url in shown.requests)


@pytest.mark.thorough
async def test_words_and_states_are_searched_for(show_items: ShowItems) -> None:
    shown = await show_items([CONTESTED, REFINED, item(3, "Units")])
    await shown.page.fill("#search", "do LABELS")
    await expect(shown.page.locator(".name")).to_have_text(["Labels"])
    await shown.page.fill("#search", "")
    for state, titles in {"contested": ["Donors"], "changed": ["Labels"], "shown": ["Labels"], "refuted": []}.items():
        await shown.page.select_option("#which", state)
        await expect(shown.page.locator(".name")).to_have_text(titles)


async def test_texts_stay_texts(show_items: ShowItems) -> None:
    shown = await show_items([item(1, MARKUP, advice=MARKUP + UNSEEN, evidence=MARKUP)])
    await shown.page.locator("summary").click()
    await expect(shown.page.locator("details .name")).to_contain_text("<script>")
    assert await shown.page.evaluate("window.hacked") is None
    assert shown.complaints == []


@pytest.mark.thorough
async def test_ten_thousand_items_are_shown_in_parts(show_items: ShowItems) -> None:
    shown = await show_items([item(number, f"Item {number}") for number in range(10_000)])
    assert await shown.page.locator("details").count() == 200
    await shown.page.click("#more")
    assert await shown.page.locator("details").count() == 400
    await shown.page.fill("#search", "Item 9999")
    await expect(shown.page.locator(".name")).to_have_text(["Item 9999"])
