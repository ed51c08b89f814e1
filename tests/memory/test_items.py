"""The items of a name: how many, how they are found, changed and forgotten."""

from collections.abc import Iterable
from typing import Any

import pytest
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from reflective_agents.memory import items as module
from reflective_agents.memory.items import MOST, MOST_EVENTS, Items
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.state.errors import Misuse
from reflective_agents.state.experience import Event, Item, new_item


def item(number: int, condition: str = "") -> Item:
    condition = condition or f"a task of kind {number}"
    return new_item(f"{number:032x}", f"Item {number}", condition, "Look.", kind="success", created=float(number))


class Counting(InMemoryStore):
    """A store that counts what is read and written."""

    operations = 0

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = [*ops]
        self.operations += len(listed)
        return await super().abatch(listed)


async def opened(store: Any = None, **options: Any) -> Items:
    return await Items.open(store or InMemoryStore(), "experience/e", "lexical", **options)


@pytest.mark.thorough
async def test_a_name_holds_ten_thousand_items_and_a_look_up_reads_few() -> None:
    store = Counting()
    items = await opened(store)
    await items.add([item(number) for number in range(MOST)])
    assert await items.count() == MOST == 10_000
    before = store.operations
    near = await items.nearest("a task of kind 4321", 8)
    looked_up, before = store.operations - before, store.operations
    await items.add([item(MOST + 1)])
    added = store.operations - before
    assert (near[0]["title"], len(near)) == ("Item 4321", 8)
    assert looked_up < 40
    assert added < 40
    assert await items.count() == MOST


async def test_those_are_forgotten_that_were_not_shown_for_the_longest_time_with_all_that_happened_to_them() -> None:
    store = InMemoryStore()
    items = await opened(store, most=3)
    await items.add([item(1), item(2), item(3)])
    await items.record("run", {f"{n:032x}": Event(what="shown", at=1000.0 + n, solved=True) for n in (1, 3)})
    await items.record("draw", {f"{2:032x}": Event(what="drawn", at=5.0)})
    await items.add([{**item(4), "created": 1000.0}])
    assert [known["title"] async for known in items.everything()] == ["Item 1", "Item 3", "Item 4"]
    assert [
        entry.key for entry in store.search(("memory",), limit=100) if f"{2:032x}" in (*entry.namespace, entry.key)
    ] == []


async def test_showings_beyond_the_latest_are_forgotten_and_other_events_stay() -> None:
    items = await opened()
    await items.add([item(1)])
    await items.record("refined", {item(1)["id"]: Event(what="refined", at=0.0, texts={"advice": "Also left."})})
    for number in range(MOST_EVENTS + 20):
        solved = number >= 20
        await items.record(f"run {number}", {item(1)["id"]: Event(what="shown", at=float(number), solved=solved)})
    [known] = await items.get([item(1)["id"]])
    assert (known["solved"], known["failed"], len(known["history"])) == (MOST_EVENTS, 0, 1)


async def test_no_number_of_events_hides_what_was_edited_or_refuted() -> None:
    items, known = await opened(), item(1)["id"]
    await items.add([item(1)])
    await items.edit("me", known, {"advice": "Wait."}, at=1.0)
    await items.count_drawn([(f"merged {number}", known, 2.0 + number) for number in range(MOST_EVENTS + 20)])
    for number in range(MOST_EVENTS + 20):
        await items.record(f"run {number}", {known: Event(what="drawn", at=2.0 + number)})
    await items.record("last", {known: Event(what="refuted", at=1e6)})
    [now] = await items.get([known])
    assert (now["advice"], now["status"], now["seen"]) == ("Wait.", "refuted", 1 + MOST_EVENTS)


async def test_items_that_are_not_shown_any_more_hide_no_others() -> None:
    items = await opened()
    await items.add([item(number, "adding sums") for number in range(50)] + [item(50, "adding sums by hand")])
    await items.record("run", {item(number)["id"]: Event(what="refuted", at=1.0) for number in range(50)})
    assert [known["id"] for known in await items.nearest("adding sums", 3)] == [item(50)["id"]]


async def test_an_edit_is_found_by_its_new_condition_and_keeps_what_was() -> None:
    items = await opened()
    await items.add([item(1, "counting bees"), item(2, "reading tides")])
    await items.edit("me", item(1)["id"], {"applies_when": "measuring glaciers", "advice": "Wait."}, at=9.0)
    near = await items.nearest("measuring glaciers", 1)
    assert (near[0]["id"], near[0]["advice"]) == (item(1)["id"], "Wait.")
    assert near[0]["history"][0]["before"] == {"applies_when": "counting bees", "advice": "Look."}
    with pytest.raises(Misuse, match="no item"):
        await items.edit("me", "0" * 32, {"advice": "No."}, at=9.0)


async def test_the_last_edit_holds_though_the_clock_was_set_back() -> None:
    items, known = await opened(), item(1)["id"]
    await items.add([item(1)])
    for run, at, advice in (("first", 3e9, "Wait."), ("second", 2e9, "Go."), ("second", 2e9, "Go.")):
        await items.edit(run, known, {"advice": advice}, at=at)
    [now] = await items.get([known])
    assert (now["advice"], len(now["history"])) == ("Go.", 2)


async def test_what_is_forgotten_leaves_nothing() -> None:
    store = InMemoryStore()
    items = await opened(store)
    await items.add([item(1), item(2)])
    await items.record("run", {item(1)["id"]: Event(what="shown", at=1.0, solved=True)})
    await items.forget(item(1)["id"])
    assert [known["title"] async for known in items.everything()] == ["Item 2"]
    kept = [entry for entry in store.search(("memory",), limit=100) if item(1)["id"] in (*entry.namespace, entry.key)]
    assert kept == []
    await items.forget_all()
    assert store.search(("memory",), limit=100) == []


async def test_what_is_forgotten_while_a_run_works_gets_no_events() -> None:
    store = InMemoryStore()
    items = await opened(store)
    await items.add([item(1)])
    await items.forget(item(1)["id"])
    await items.record("run", {item(1)["id"]: Event(what="refined", at=1.0, texts={"advice": "A trace."})})
    kept = [entry for entry in store.search(("memory",), limit=100) if item(1)["id"] in (*entry.namespace, entry.key)]
    assert kept == []


async def test_forgetting_that_was_interrupted_can_be_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    items = await opened()
    await items.add([item(1)])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStream, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            await items.forget(item(1)["id"])
    assert len(await items.get([item(1)["id"]])) == 1
    await items.forget(item(1)["id"])
    assert await items.count() == 0


@pytest.mark.parametrize("text", [" ", "\0", "x" * 1001], ids=["blank", "null", "long"])
async def test_an_edit_is_as_long_as_an_item_may_be(text: str) -> None:
    items = await opened()
    await items.add([item(1)])
    with pytest.raises(Misuse, match="1 to 1000 characters"):
        await items.edit("me", item(1)["id"], {"advice": text}, at=1.0)


async def test_an_item_that_is_known_is_left_as_it_is() -> None:
    items = await opened()
    assert await items.add([item(1)]) == [item(1)["id"]]
    assert await items.add([{**item(1), "advice": "Other."}, item(2)]) == [item(2)["id"]]
    assert [known["advice"] for known in await items.get([item(1)["id"]])] == ["Look."]


def test_the_least_trust_is_reached_after_the_failures_that_are_said() -> None:
    failures = [n for n in range(20) if 2 / (n + 2) < module.LEAST_TRUST]
    assert failures[0] == 7
