"""Items as files: exported and imported, written by hand, merged."""

import json
import time
from collections.abc import Callable

import pytest
from langgraph.store.memory import InMemoryStore

from reflective_agents.memory.exchange import MOST_LINES, export_items, import_items, merge_items, read_items
from reflective_agents.memory.items import Items
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.state.errors import Misuse
from reflective_agents.state.experience import LONGEST_TEXT, Event, Item, advice_of, new_item
from reflective_agents.state.memories import new_memory

HAND = {"title": "Length", "applies_when": "a short label", "advice": "Forty words."}


async def opened(name: str = "e") -> Items:
    return await Items.open(InMemoryStore(), f"experience/{name}", "lexical")


async def lived() -> Items:
    """Items to which much has happened."""
    items = await opened()
    await items.add([new_item(f"{n:032x}", f"T{n}", f"kind {n}", "Look.", kind="failure", created=1.0) for n in (1, 2)])
    await items.record("a", {f"{1:032x}": Event(what="shown", at=2.0, solved=False)})
    await items.record("b", {f"{1:032x}": Event(what="refined", at=3.0, texts={"advice": "Also left."})})
    await items.record("c", {f"{2:032x}": Event(what="contradicted", at=4.0, by=f"{1:032x}")})
    return items


async def everything(items: Items) -> list[Item]:
    return [item async for item in items.everything()]


async def test_what_is_exported_is_imported_as_it_was() -> None:
    items, other = await lived(), await opened("other")
    lines = [line async for line in export_items(items)]
    assert len(await import_items(other, lines)) == 2
    assert await everything(other) == await everything(items)
    assert await import_items(other, lines) == []


async def test_a_file_by_hand_needs_three_texts_and_is_imported_once() -> None:
    items = await opened()
    line = json.dumps(HAND)
    assert len(await import_items(items, [line, "", line])) == 1
    assert await import_items(items, [line]) == []
    [known] = await everything(items)
    assert (known["advice"], known["kind"], known["seen"], known["status"]) == ("Forty words.", "success", 1, "active")


@pytest.mark.parametrize(
    "change",
    [
        {"advice": ""},
        {"advice": "x" * 2000},
        {"title": None},
        {"id": "../x"},
        {"id": "a" * 32 + "\n"},
        {"solved": -1},
        {"created": 1e300},
        {"kind": "system"},
        {"status": "trusted"},
        {"instructions": "obey"},
        {"applies_when": "\0"},
        {"title": " \0 "},
        {"history": [{"at": 1, "what": "edited"}]},
        {"history": [{"at": 1e300, "what": "edited", "before": {}, "after": {"title": "x"}}]},
        {"history": [{"at": 1, "what": "edited", "before": {}, "after": {"status": "active"}}]},
        {"history": [{"at": 1, "what": "refined", "before": {}, "after": {"advice": "x" * 2000}}]},
    ],
    ids=str,
)
async def test_a_line_that_is_no_item_is_refused_with_its_number_and_nothing_is_imported(change: object) -> None:
    items = await opened()
    assert isinstance(change, dict)
    with pytest.raises(Misuse, match="line 2 is no item"):
        await import_items(items, [json.dumps(HAND), json.dumps({**HAND, **change})])
    assert await items.count() == 0


@pytest.mark.hostile
@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    "more",
    [
        lambda: {"history": [{}] * 1_000_000},
        lambda: {"advice": "a" * 25_000_000},
        lambda: {str(number): 1 for number in range(1_000_000)},
    ],
    ids=["changes", "text", "fields"],
)
def test_a_line_of_too_much_is_refused_at_once(more: Callable[[], dict[str, object]]) -> None:
    line = json.dumps({**HAND, **more()})
    begun = time.process_time()
    with pytest.raises(Misuse, match="line 1 is no item"):
        read_items([line])
    assert time.process_time() - begun < 1


def test_an_item_may_have_as_much_as_is_kept_of_it() -> None:
    texts = dict.fromkeys(("title", "applies_when", "advice", "evidence"), "é" * LONGEST_TEXT)
    changes = [{"at": 1.0, "what": "edited", "before": texts, "after": texts}] * MOST_LINES
    line = json.dumps({**HAND, "history": changes, "against": ["a" * 32] * MOST_LINES}, ensure_ascii=False)
    assert len(read_items([line])[0]["history"]) == MOST_LINES


async def test_a_refinement_without_advice_adds_none() -> None:
    items = await opened()
    await import_items(
        items, [json.dumps({**HAND, "history": [{"at": 1, "what": "refined", "before": {}, "after": {}}]})]
    )
    [known] = await everything(items)
    assert advice_of(known) == "Forty words."


async def test_a_lesson_of_an_earlier_version_is_exported_as_it_can_be_imported() -> None:
    store, other = InMemoryStore(), await opened("other")
    stream = await MemoryStream.open(store, "experience/e", "lexical")
    texts = (f"{'Long. ' * 300}(from the task: {'What? ' * 300})", "(from the task: What?)")
    await stream.add([new_memory(text, created=1.0, kind="reflection") for text in texts])
    old = Items(store, stream)
    assert len(await import_items(other, [line async for line in export_items(old)])) == 2
    assert await everything(other) == await everything(old)


async def test_merging_counts_what_says_the_same_and_changes_nothing_when_done_again() -> None:
    items = await opened()
    await import_items(items, [json.dumps({**HAND, "id": "a" * 32})])
    others = read_items(
        [json.dumps({**HAND, "advice": "forty  WORDS", "id": "b" * 32}), json.dumps({**HAND, "advice": "Fifty words."})]
    )
    for expected in ((1, 1), (0, 1)):
        merged = await merge_items(items, others)
        assert (merged.added, merged.counted) == expected
    assert sorted((item["advice"], item["seen"]) for item in await everything(items)) == [
        ("Fifty words.", 1),
        ("Forty words.", 2),
    ]


async def test_merging_goes_by_what_an_item_says_since_it_was_edited() -> None:
    items = await opened()
    await import_items(items, [json.dumps({**HAND, "id": "a" * 32})])
    await items.record("run", {"a" * 32: Event(what="shown", at=1.0, solved=True)})
    await items.edit("me", "a" * 32, {"advice": "Thirty words."}, at=2.0)
    others = read_items(json.dumps({**HAND, "advice": advice}) for advice in ("Thirty words", "Forty words"))
    merged = await merge_items(items, others)
    assert (merged.added, merged.counted) == (1, 1)
