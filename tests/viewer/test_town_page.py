"""The page of a town's day in a browser: what it shows, how it is used, and that texts stay texts."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from reflective_agents.town.page import TownPicture, town_page
from tests.viewer.conftest import Shown
from tests.viewer.test_page import MARKUP, UNSEEN
from tests.viewer.town_days import day

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
ShowDay = Callable[..., Awaitable[Shown]]


@pytest.fixture
def show_day(window: Page, tmp_path: Path) -> ShowDay:
    """Return what shows a day."""

    async def open_page(picture: TownPicture, width: int = 1280, **preferences: Any) -> Shown:
        shown = Shown(window)
        await window.set_viewport_size({"width": width, "height": 800})
        await window.emulate_media(**{"color_scheme": "null", "reduced_motion": "null", **preferences})
        file = tmp_path / "town.html"
        await asyncio.to_thread(file.write_text, town_page(picture), "utf-8")
        await window.goto(file.as_uri())
        return shown

    return open_page


async def texts(shown: Shown, selector: str) -> list[str]:
    return [
        " ".join(text.replace("\N{BLACK DIAMOND}", " \N{BLACK DIAMOND}").split())
        for text in await shown.page.locator(selector).all_inner_texts()
    ]


async def test_the_day_stands_in_rows_with_words_for_every_colour(show_day: ShowDay) -> None:
    shown = await show_day(day())
    assert await texts(shown, ".day thead th") == ["agent", "07:00", "08:00"]
    assert await texts(shown, ".day tbody tr:nth-child(1) td") == ["Café drinks coffee talk 1 ◆ knows"]
    assert await texts(shown, ".day tbody tr:nth-child(2) td") == [
        "House drinks coffee",
        "Café drinks coffee talk 1 ◆ knows",
        "House drinks coffee",
    ]
    assert await shown.page.locator(".day td").nth(0).get_attribute("colspan") == "3"
    label = await shown.page.locator(".moment").nth(2).get_attribute("aria-label")
    assert label == "Ben, 07:30 to 08:00, Café: drinks coffee"
    assert await texts(shown, "#news .chip") == ["◆ Anna (07:00)", "◆ Anna → Ben (07:30)"]
    assert shown.complaints == []


@pytest.mark.thorough
async def test_a_conversation_and_what_is_remembered_of_it(show_day: ShowDay) -> None:
    shown = await show_day(day())
    await shown.page.locator(".day .chip", has_text="talk 1").first.click()
    assert await texts(shown, "#panel .lines li") == ["Anna There is a party.", "Ben Oh."]
    assert await texts(shown, "#panel h4") == ["Anna", "Ben"]
    await shown.page.locator("#panel [data-memory=m3]").click()
    assert await texts(shown, "#panel h2") == ["Ben\N{RIGHT SINGLE QUOTATION MARK}s memory"]
    assert await texts(shown, "#panel dd") == ["07:30", "heard (Anna)", "3", "08:00", "yes: a reflection rests on it"]
    assert await texts(shown, "#panel .terms tbody tr") == ["08:00 There is a party. 0.50 1.00 0.25 0.75"]


@pytest.mark.thorough
async def test_no_figure_of_what_was_retrieved_is_cut_off(show_day: ShowDay) -> None:
    shown = await show_day(day("long " * 40))
    await shown.page.set_viewport_size({"width": 1000, "height": 800})
    await shown.page.locator(".day .chip", has_text="talk 1").first.click()
    await shown.page.locator("#panel [data-memory=m3]").click()
    [wider] = await shown.page.locator("#panel .scroll").evaluate_all(
        "all => all.map(it => it.scrollWidth - it.clientWidth)"
    )
    assert wider == 0


@pytest.mark.thorough
async def test_reflections_are_trees_down_to_what_was_heard(show_day: ShowDay) -> None:
    shown = await show_day(day())
    await shown.page.locator("#whose button", has_text="Ben").click()
    tops = shown.page.locator(".tree > li > details > summary")
    assert [" ".join(text.split()) for text in await tops.all_inner_texts()] == [
        "08:00 reflection: Ben thinks twice: There is a party. (because of 1 thing)"
    ]
    for _ in range(2):
        await shown.page.locator(".tree details:not([open]) > summary").first.click()
    leaf = shown.page.locator(".tree li li li button")
    assert await leaf.inner_text() == '07:30 heard: Anna said to Ben: "There is a party."'
    await leaf.click()
    assert await texts(shown, "#panel [data-memory]") == ["08:00 reflection: Ben thinks: There is a party."]
    assert len(await texts(shown, "#memories tbody tr")) == 3


@pytest.mark.thorough
async def test_arrow_keys_walk_the_day(show_day: ShowDay) -> None:
    shown = await show_day(day())
    await shown.page.locator(".moment").first.focus()
    walked = []
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowDown", "End", "Home"):
        await shown.press(key)
        walked.append(str(await shown.page.evaluate("() => document.activeElement.ariaLabel"))[:11])
    assert walked == [
        "Ben, 07:00 ",
        "Ben, 07:30 ",
        "Ben, 08:00 ",
        "Anna, 07:00",
        "Ben, 07:00 ",
        "Ben, 08:00 ",
        "Ben, 07:00 ",
    ]
    await shown.press("Enter")
    assert await texts(shown, "#panel h2") == ["Ben, 07:00"]
    assert await shown.page.locator(".moment[aria-current=true]").count() == 1
    assert await shown.page.locator(".moment[tabindex='0']").count() == 1


@pytest.mark.matrix
@pytest.mark.parametrize("text", [MARKUP, UNSEEN, "__proto__"], ids=["markup", "unseen", "prototype"])
async def test_text_stays_text(show_day: ShowDay, text: str) -> None:
    shown = await show_day(day(text))
    await shown.page.locator("#whose button").nth(1).click()
    for chip in await shown.page.locator(".day .chip, #news .chip").all():
        await chip.click()
    count = "names => names.map(name => document.getElementsByTagName(name).length)"
    assert await shown.page.evaluate(count, ["script", "style", "img", "iframe", "a", "base"]) == [2, 1, 0, 0, 0, 0]
    assert await shown.page.evaluate("() => window.hacked ?? null") is None
    assert await shown.page.locator("#panel .text").first.text_content() in (text, f'Anna said to Ben: "{text}"')
    assert shown.complaints == []


async def test_the_page_asks_for_nothing(show_day: ShowDay) -> None:
    shown = await show_day(day())
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:,)""", town_page(day()))
    sent = "() => fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"
    assert await shown.page.evaluate(sent) == "refused"
    assert [url[:8] for url in shown.requests] == ["file:///"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_read_on_every_place(show_day: ShowDay, scheme: str) -> None:
    script = """() => {
      const pencil = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      const light = (colour) => {
        pencil.fillStyle = colour;
        pencil.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...pencil.getImageData(0, 0, 1, 1).data].map((part) => linear(part / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      return [...document.querySelectorAll(".day td")].map((cell) => {
        const colours = [getComputedStyle(cell.firstChild).color, getComputedStyle(cell).backgroundColor];
        const [ink, paper] = colours.map(light);
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      });
    }"""
    picture = day()
    picture["places"] = [f"Place {number}" for number in range(8)]
    picture["day"] = [
        {"step": 1, "time": "07:00", "agent": "Anna", "place": where, "doing": "waits", "talk": 0}
        for where in picture["places"]
    ]
    shown = await show_day(picture, color_scheme=scheme)
    contrasts = await shown.page.evaluate(script)
    assert len(contrasts) == 8
    assert min(contrasts) >= 7


async def test_a_narrow_window_shows_everything_below_each_other(show_day: ShowDay) -> None:
    shown = await show_day(day(), width=420)
    wide = await shown.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 420
    assert await shown.page.locator("#panel").is_visible()


async def test_a_day_without_talk_news_or_end_is_shown(show_day: ShowDay) -> None:
    picture = {**day(), "conversations": [], "spread": [], "fact": "", "outcome": None, "retrievals": []}
    shown = await show_day(picture)
    assert "Nobody talked." in await shown.page.inner_text("#talks")
    assert shown.complaints == []
