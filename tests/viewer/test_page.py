"""The page in a browser: what it shows, how it is used, and that texts stay texts."""

import math
import re
from typing import Any

import pytest

from reflective_agents.viewer.figures import figures, uct, value
from reflective_agents.viewer.page import page as html_of
from reflective_agents.viewer.picture import complete
from tests.viewer.conftest import Show
from tests.viewer.pictures import figures as figure_of
from tests.viewer.pictures import filled_with, grown, node, small

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MARKUP = """<script>window.hacked = 1</script> </script><script>window.hacked = 1</script><!--<script>
<img src=x onerror='window.hacked = 1'><svg onload=window.hacked=1> "' onfocus=window.hacked=1 autofocus x='
${window.hacked = 1} $policy {{7*7}} &lt;b&gt; \\u003c javascript:window.hacked=1 [x](javascript:window.hacked=1)"""
UNSEEN = "\u202e\u2067 gpj.exe \u200f\u200b \u0000\u0007 \ud800"
RESULTS = '[{"title": "<b>x</b>", "url": "javascript:alert(1)", "content": "<img src=x onerror=alert(1)>"}]'

CONTRASTS = """() => {
  const pencil = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    pencil.fillStyle = colour;
    pencil.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...pencil.getImageData(0, 0, 1, 1).data].map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = (name) => getComputedStyle(document.querySelector(name));
  const paper = light(style("body").backgroundColor);
  const contrast = (colour) => {
    const ink = light(colour);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  };
  const written = ["h1", "#facts", "#status", ".chip", ".note", "#panel h3"].map((name) => style(name).color);
  return [...written, ...[".q", ".n", ".words"].map((name) => style(name).fill)].map(contrast);
}"""
UNKNOWN = "\N{EN DASH}"


def named(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


async def test_page_asks_for_nothing_and_complains_of_nothing(show: Show) -> None:
    shown = await show(small())
    await shown.page.focus("#tree")
    await shown.press("[", "]", "{", "}", "p", "p", "+", "-", "0", "u", "f", "u", "?", "?", "Enter", "Enter")
    assert shown.complaints == []
    assert [url[:8] for url in shown.requests] == ["file:///"]
    assert await shown.page.title() == "lats: What do tides do?"


async def test_policy_forbids_everything_else(show: Show) -> None:
    shown = await show(small())
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:,)""", html_of(small()))
    assert (
        await shown.page.evaluate("() => fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    )
    script = "() => { try { document.body.innerHTML = '<b>'; return 'parsed' } catch (error) { return error.name } }"
    assert await shown.page.evaluate(script) == "TypeError"
    script = "() => { const made = document.createElement('style'); made.textContent = '* { color: red }';"
    await shown.page.evaluate(f"{script} document.head.append(made) }}")
    assert await shown.page.evaluate("() => getComputedStyle(document.body).color") != "rgb(255, 0, 0)"


@pytest.mark.matrix
@pytest.mark.parametrize("text", [MARKUP, UNSEEN, "__proto__"], ids=["markup", "unseen", "prototype"])
async def test_text_stays_text(show: Show, text: str) -> None:
    shown = await show(filled_with(text))
    count = "names => names.map(name => document.getElementsByTagName(name).length)"
    assert await shown.page.evaluate(count, ["script", "style", "img", "iframe", "a", "base"]) == [3, 1, 0, 0, 0, 0]
    assert await shown.page.evaluate("() => window.hacked ?? null") is None
    assert shown.complaints == []
    texts = await shown.page.eval_on_selector_all("#panel section > .text", "all => all.map(one => one.textContent)")
    assert len(texts) >= 5
    assert {*texts} == {text, f"{text}: {text}"}


async def test_search_results_are_set_as_a_list_of_texts(show: Show) -> None:
    shown = await show(filled_with(RESULTS))
    assert await shown.page.inner_text("[data-block=Critique] li") == (
        "<b>x</b>\njavascript:alert(1)\n\n<img src=x onerror=alert(1)>"
    )
    assert shown.complaints == []


@pytest.mark.thorough
async def test_long_text_is_whole_in_the_panel_and_short_in_the_tree(show: Show) -> None:
    text = "All the tides. 潮汐 " * 6000
    messages = [{"type": "ai", "content": text, "tool_calls": []}]
    shown = await show(complete({"nodes": {"0": node("0", "answer", messages=messages, critique=text)}}))
    assert await shown.page.text_content("[data-block=Critique] .text") == text
    assert await shown.page.text_content(".messages .text") == text
    width, height = "one => one.getBoundingClientRect().width", "one => one.getBoundingClientRect().height"
    assert await shown.page.eval_on_selector("[id='node-0'] > text", width) < 560
    assert await shown.page.eval_on_selector("[data-block=Critique] .text", height) < 400


async def test_slider_shows_exactly_the_nodes_of_each_frame(show: Show) -> None:
    picture = grown(60)
    shown = await show(picture)
    await shown.page.focus("#slider")
    await shown.press("Home")
    expected: set[str] = set()
    for number, frame in enumerate(picture["frames"], 1):
        expected |= {*frame["added"]}
        assert {*await shown.visible()} == expected
        assert (await shown.page.inner_text("#status")).startswith(f"Step {number} of {len(picture['frames'])}, ")
        assert {
            *await shown.page.eval_on_selector_all(".node.fresh[data-id]", "all => all.map(one => one.dataset.id)")
        } == ({*frame["added"]} if number > 1 else set())
        await shown.press("ArrowRight")


@pytest.mark.thorough
async def test_panel_has_the_figures_of_each_frame(show: Show) -> None:
    picture = grown(40)
    shown = await show(picture)
    key, parent = picture["path"][-2:][::-1]
    await shown.press("{")
    for index in range(len(picture["frames"])):
        known = figures(picture, index)
        if key in known:
            await shown.click(key)
            assert await shown.figure("N") == str(known[key]["visits"])
            assert await shown.figure("Q") == named(value(known[key]))
            assert await shown.figure("UCT") == named(uct(known[key], known[parent], 1.0))
            label = await shown.page.text_content(f"[id='node-{key}'] .q")
            assert label == named(value(known[key]))
        await shown.press("]")


async def test_panel_says_what_the_search_goes_by(show: Show) -> None:
    stats = {
        "0": {**figure_of(4, 1.0), "best": 0.75},
        "0.0": {**figure_of(4, 1.0), "best": 0.75, "prior": 0.875},
        "0.1": {**figure_of(0, 0.0), "prior": 0.5},
    }
    nodes = {key: node(key) for key in stats}
    shown = await show(complete({"nodes": nodes, "frames": [{"stats": stats}], "weight": 1.0, "aggregate": "max"}))
    panel = shown.page.locator("#panel")
    await shown.click("0.0")
    assert await panel.locator("[data-figure=Q]").inner_text() == "Q\n0.75\nhighest passed up"
    assert await shown.figure("UCT") == f"{0.75 + math.sqrt(math.log(4) / 4):.2f}"
    await shown.click("0.1")
    assert await panel.locator("[data-figure=Q]").inner_text() == "Q\n0.50\nprior, until visited"
    assert await shown.figure("UCT") == f"{0.5 + math.sqrt(math.log(4)):.2f}"
    assert await shown.page.text_content("[id='node-0.1'] > text") == "(0.50)\N{MULTIPLICATION SIGN}0"


async def test_panel_tells_all_that_is_known_of_a_node(show: Show) -> None:
    shown = await show(small())
    panel = shown.page.locator("#panel")
    assert await shown.selected() == "0.0.0"
    assert [await shown.figure(name) for name in ("score", "reward", "depth")] == ["1.00", "1.00", "2"]
    assert await panel.locator(".chip").all_inner_texts() == [
        "solved",
        "on the chosen path",
        "closed",
        "3 identical samples",
    ]
    assert await panel.locator(".terms tr").all_inner_texts() == ["judge\t0.90\t", "consistency\t0.75\t"]
    assert await panel.locator("[data-figure=added]").inner_text() == "added\nstep 3\n1 call, 300 tokens"
    await shown.click("0.1")
    assert await panel.locator("[data-block=Action] .text").inner_text() == "guess()"
    assert await panel.locator("[data-block=Observation] .text").inner_text() == "Nothing."
    assert await panel.locator("[data-block=Critique] .text").inner_text() == "A guess."
    assert await panel.locator("[data-block=Reflection] .text").inner_text() == "Do not guess."
    assert await shown.figure("model") == "small"
    await panel.locator(".trail button").click()
    assert await shown.selected() == "0"
    await panel.locator("summary", has_text="The whole run").click()
    assert "model calls 4, total tokens 1,500, seconds 2.5" in await panel.inner_text()


@pytest.mark.thorough
async def test_messages_are_listed_with_their_calls(show: Show) -> None:
    shown = await show(small())
    await shown.click("0.0")
    await shown.page.locator("summary", has_text="Messages (2)").click()
    assert await shown.page.locator(".messages > li").all_inner_texts() == [
        'ai\nLook it up.\nsearch {\n "query": "moon tides"\n}',
        "tool\nThe moon pulls the water.",
    ]


@pytest.mark.thorough
async def test_folding_hides_what_lies_below(show: Show) -> None:
    shown = await show(small())
    await shown.page.focus("#tree")
    await shown.press("ArrowLeft", "Enter")
    assert await shown.visible() == ["0", "0.0", "0.1"]
    folded = shown.page.locator("[id='node-0.0']")
    assert await folded.get_attribute("aria-expanded") == "false"
    assert await folded.locator(".badge").text_content() == "+1"
    await folded.locator(".toggle").click()
    assert await shown.visible() == ["0", "0.0", "0.0.0", "0.1"]
    await shown.press("Home", "Enter")
    assert await shown.visible() == ["0"]
    await shown.page.get_by_role("button", name="Unfold all").click()
    assert len(await shown.visible()) == 4


@pytest.mark.thorough
async def test_folded_node_stays_where_it_is(show: Show) -> None:
    shown = await show(grown(60))
    await shown.page.focus("#tree")
    await shown.press("ArrowLeft")
    before = await shown.box(await shown.selected())
    await shown.press("Enter")
    after = await shown.box(await shown.selected())
    assert (after["x"], after["y"]) == pytest.approx((before["x"], before["y"]), abs=0.5)


async def test_selecting_unfolds_the_way(show: Show) -> None:
    shown = await show(small())
    await shown.page.focus("#tree")
    await shown.press("Home", "Enter")
    await shown.press("End")
    assert await shown.selected() == "0.0.0"
    assert len(await shown.visible()) == 4


@pytest.mark.thorough
async def test_arrow_keys_walk_the_tree(show: Show) -> None:
    shown = await show(small())
    for _ in range(12):
        await shown.press("Tab")
        if await shown.page.evaluate("() => document.activeElement.id") == "tree":
            break
    walked = []
    for key in ("Home", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowLeft"):
        await shown.press(key)
        walked.append(await shown.selected())
    assert walked == ["0", "0.0", "0.1", "0.1", "0.0", "0.0.0", "0.0.0", "0.0"]
    await shown.press("Enter", "ArrowRight")
    assert await shown.selected() == "0.0.0"


async def test_focus_can_be_seen(show: Show) -> None:
    shown = await show(small())
    stroke = "() => getComputedStyle(document.querySelector('.selected .ring')).strokeWidth"
    before = await shown.page.evaluate(stroke)
    await shown.press("Tab", "Tab", "Tab")
    assert await shown.page.evaluate("() => document.activeElement.id") == "tree"
    assert await shown.page.evaluate(stroke) != before


@pytest.mark.thorough
async def test_assistive_technology_is_told_of_the_tree(show: Show) -> None:
    shown = await show(small())
    tree = shown.page.get_by_role("tree", name="Search tree")
    assert await tree.get_by_role("treeitem").count() == 4
    item = tree.get_by_role("treeitem", name="0.0.0: answer, Q 1.00, 1 visit, solved, on the chosen path, closed.")
    labels = {name: await item.get_attribute(f"aria-{name}") for name in ("level", "setsize", "posinset", "selected")}
    assert labels == {"level": "3", "setsize": "1", "posinset": "1", "selected": "true"}
    assert await tree.get_by_role("treeitem", name="0.0: action").get_attribute("aria-expanded") == "true"
    unnamed = "all => all.filter(one => !(one.textContent.trim() || one.ariaLabel)).length"
    assert await shown.page.eval_on_selector_all("button, input", unnamed) == 0


@pytest.mark.thorough
async def test_path_is_told_apart_without_colour(show: Show) -> None:
    shown = await show(small())
    style = "all => all.map(one => parseFloat(getComputedStyle(one).strokeWidth))"
    path = await shown.page.eval_on_selector_all("#links .path", style)
    others = await shown.page.eval_on_selector_all("#links .link:not(.path)", style)
    assert (len(path), len(others)) == (2, 1)
    assert min(path) >= 2 * max(others)
    ids = await shown.page.eval_on_selector_all("#nodes .path", "all => all.map(one => one.dataset.id)")
    assert ids == small()["path"]


@pytest.mark.thorough
async def test_kinds_and_ends_have_signs_of_their_own(show: Show) -> None:
    shown = await show(small())
    signs = {
        key: await shown.page.eval_on_selector_all(
            f"[id='node-{key}'] > path", "all => all.map(one => one.getAttribute('d'))"
        )
        for key in ("0", "0.0", "0.1", "0.0.0")
    }
    assert len({signs[key][0] for key in ("0", "0.0", "0.0.0")}) == 3
    assert len({signs[key][1] for key in ("0.0", "0.1", "0.0.0")}) == 3
    await shown.press("[")
    assert await shown.page.get_attribute("[id='node-0.1'] > .mark", "d") == ""


@pytest.mark.thorough
async def test_zoom_and_pan(show: Show) -> None:
    shown = await show(small())
    before = await shown.box("0.0")
    await shown.page.mouse.move(before["x"] + 5, before["y"] + 5)
    await shown.page.mouse.wheel(0, -400)
    await shown.page.wait_for_function(
        "width => document.querySelector('[id=\"node-0.0\"] > .shape').getBoundingClientRect().width > width",
        arg=before["width"] * 1.5,
    )
    near = await shown.box("0.0")
    assert near["x"] <= before["x"] + 5 <= near["x"] + near["width"], "what lies under the pointer stays there"
    await shown.page.mouse.move(300, 200)
    await shown.page.mouse.down()
    await shown.page.mouse.move(350, 170, steps=3)
    await shown.page.mouse.up()
    moved = await shown.box("0.0")
    assert (moved["x"] - near["x"], moved["y"] - near["y"]) == pytest.approx((50, -30), abs=0.1)
    await shown.page.get_by_role("button", name="Zoom out").click()
    assert (await shown.box("0.0"))["width"] == pytest.approx(near["width"] / 1.3, rel=0.01)
    await shown.page.focus("#tree")
    await shown.press("+", "0")
    assert await shown.box("0.0") == pytest.approx(before, abs=0.5)
    await shown.press("Shift+ArrowLeft")
    assert (await shown.box("0.0"))["x"] == pytest.approx(before["x"] + 80, abs=0.5)


@pytest.mark.thorough
async def test_whole_tree_fits(show: Show) -> None:
    shown = await show(grown(80), width=900, height=600)
    await shown.press("u", "0")
    stage = await shown.page.locator("#tree").bounding_box()
    nodes = await shown.page.locator("#nodes").bounding_box()
    assert stage is not None
    assert nodes is not None
    assert stage["x"] <= nodes["x"]
    assert stage["y"] <= nodes["y"]
    assert nodes["x"] + nodes["width"] <= stage["x"] + stage["width"]
    assert nodes["y"] + nodes["height"] <= stage["y"] + stage["height"]


@pytest.mark.thorough
async def test_player_goes_through_the_history(show: Show) -> None:
    shown = await show(small())
    await shown.page.evaluate("() => { window.setInterval = (act) => { window.tick = act; return 1 } }")
    await shown.page.get_by_role("button", name="Play").click()
    assert await shown.visible() == ["0"]
    await shown.page.evaluate("() => tick()")
    assert await shown.visible() == ["0", "0.0", "0.1"]
    await shown.page.get_by_role("button", name="Pause").click()
    assert await shown.page.get_by_role("button", name="Play").get_attribute("aria-pressed") == "false"
    await shown.page.get_by_role("button", name="Play").click()
    await shown.page.evaluate("() => { tick(); tick() }")
    assert len(await shown.visible()) == 4
    assert await shown.page.get_by_role("button", name="Play").get_attribute("aria-pressed") == "false"


@pytest.mark.thorough
async def test_selection_goes_up_with_the_history(show: Show) -> None:
    shown = await show(small())
    await shown.press("[")
    assert await shown.selected() == "0.0"
    await shown.press("[")
    assert await shown.selected() == "0"
    await shown.press("}")
    assert await shown.selected() == "0.0.0", "what was chosen is selected again"


@pytest.mark.thorough
@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
async def test_nothing_moves_where_that_is_not_wanted(show: Show, motion: Any, moves: bool) -> None:
    shown = await show(small(), reduced_motion=motion)
    await shown.press("[")
    assert (await shown.page.evaluate("() => document.getAnimations().length") > 0) == moves


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_texts_stand_out_in_both_themes(show: Show, scheme: Any) -> None:
    shown = await show(small(), color_scheme=scheme)
    contrasts = await shown.page.evaluate(CONTRASTS)
    assert min(contrasts) >= 4.5
    chosen = await shown.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    await shown.page.get_by_role("button", name="Theme").click()
    await shown.page.get_by_role("button", name="Theme").click()
    dark = await shown.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (chosen == dark) == (scheme == "dark")


@pytest.mark.thorough
async def test_help_lists_the_keys_and_closes(show: Show) -> None:
    shown = await show(small())
    await shown.press("?")
    dialog = shown.page.get_by_role("dialog", name="Keys")
    assert "fold or unfold what lies below the node" in await dialog.inner_text()
    await shown.press("[")
    assert len(await shown.visible()) == 4, "keys do nothing behind the help"
    await shown.press("Escape")
    assert await dialog.count() == 0


@pytest.mark.thorough
async def test_large_tree_begins_folded_and_unfolds(show: Show) -> None:
    picture = grown(1000, depth=12)
    shown = await show(picture)
    first = await shown.visible()
    assert {*picture["path"]} <= {*first}
    assert len(first) <= 100
    await shown.press("u")
    assert {*await shown.visible()} == {*picture["nodes"]}
    await shown.press("{")
    assert await shown.visible() == ["0"]
    await shown.press("}", "f")
    assert {*picture["path"]} <= {*await shown.visible()} < {*picture["nodes"]}
    assert shown.complaints == []


async def test_unvisited_node_shows_its_own_value_in_brackets(show: Show) -> None:
    shown = await show(complete({"nodes": {"0": node("0", score=0.5)}}))
    assert await shown.page.text_content("[id='node-0'] > text") == "(0.50)\N{MULTIPLICATION SIGN}0"
    assert [await shown.figure(name) for name in ("Q", "score")] == [UNKNOWN, "0.50"]


@pytest.mark.thorough
async def test_narrow_window_has_everything(show: Show) -> None:
    shown = await show(grown(30), width=400, height=800)
    for part in ("#tree", "#panel", "#slider", "#status"):
        box = await shown.page.locator(part).bounding_box()
        assert box is not None
        assert (box["x"] >= 0, box["x"] + box["width"] <= 400, box["y"] + box["height"] <= 800) == (True, True, True)
    assert await shown.page.evaluate("() => document.documentElement.scrollWidth") == 400


@pytest.mark.thorough
async def test_nodes_need_only_their_place(show: Show) -> None:
    whole = small()
    bare = {key: node(key, own["kind"]) for key, own in whole["nodes"].items()}
    shown = await show(complete({"nodes": bare}))
    await shown.page.focus("#tree")
    await shown.press("[", "]", "u", "f", "End", "Home", "ArrowRight")
    assert await shown.visible() == ["0", "0.0", "0.1"]
    assert await shown.figure("Q") == UNKNOWN
    assert await shown.page.text_content("[id='node-0'] .q") == UNKNOWN
    assert shown.complaints == []
