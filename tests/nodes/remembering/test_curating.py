"""Items curated: counted, refined, contested and refuted, never rewritten."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from reflective_agents.graphs import reflection
from reflective_agents.memory.items import Items
from reflective_agents.nodes.remembering.curating import curate
from reflective_agents.state.experience import DrawnItem, Event, Item, advice_of, folded, trust
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.testing.script import Reply, Request
from tests.nodes.remembering.learners import all_items, drawn, holding, item, items_of, learning
from tests.strategies import ASK


@pytest.fixture(autouse=True)
def quick_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")


def accepting(accepts: bool) -> Any:
    def reply(request: Request) -> Reply:
        if request.schema == "Critique":
            return {"critique": "So.", "score": 0.9 if accepts else 0.2, "accept": accepts}
        return "A draft."

    return reply


async def run(store: InMemoryStore, *draws: Any, solved: bool = True, applies: Any = lambda _: True) -> Any:
    """A run that is solved or not, and draws these items."""
    model = learning(accepting(solved), draws=draws, applies=applies, used=[1])
    context = ReflectionContext(model=model, experience="e", max_rounds=1)
    return await reflection.builder.compile(store=store).ainvoke(ASK, context=context)


async def only(store: InMemoryStore) -> Item:
    [known] = await all_items(store)
    return known


async def test_what_is_known_is_counted() -> None:
    store = await holding(item(1))
    await run(store, drawn("In other words.", relation="same", known=1))
    await run(store, drawn("LOOK  twice!"))
    result = await run(store)
    known = await only(store)
    assert (known["seen"], known["solved"], known["failed"], known["history"]) == (3, 3, 0, [])
    assert result["experience"] == {
        "shown": [{"id": known["id"], "title": "Item 1"}],
        "used": [known["id"]],
        "drawn": [],
    }


async def test_signs_tell_advice_apart() -> None:
    store = await holding(item(1, "Try (a + b) * c."))
    await run(store, drawn("Try (a - b) * c."))
    assert [known["seen"] for known in await all_items(store)] == [1, 1]


async def test_a_refinement_is_added_and_the_advice_stays() -> None:
    store = await holding(item(1))
    for number in range(1, 6):
        await run(store, drawn(f"Also {number}.", relation="refines", known=1, evidence=f"Run {number}."))
    known = await only(store)
    assert known["advice"] == "Look twice."
    assert [change["after"]["evidence"] for change in known["history"]] == [f"Run {n}." for n in range(1, 6)]
    assert advice_of(known) == "Look twice.\nAlso 3.\nAlso 4.\nAlso 5."


async def test_a_refinement_that_is_drawn_again_is_counted() -> None:
    store = await holding(item(1))
    for relation in ("refines", "refines", "new"):
        await run(store, drawn("Also left.", relation=relation, known=1))
    known = await only(store)
    assert (known["seen"], advice_of(known)) == (3, "Look twice.\nAlso left.")


async def test_the_one_of_two_that_was_shown_in_a_solved_run_is_confirmed() -> None:
    store = await holding(item(1, "Look twice."))
    draw = drawn("Never look twice.", relation="contradicts", known=1, applies_when="a question that opposes")
    await run(store, draw, applies=lambda _: False)
    await run(store, applies=lambda text: "opposes" in text, solved=False)
    assert [known["status"] for known in await all_items(store)] == ["contested", "contested"]
    await run(store, applies=lambda text: "opposes" in text)
    assert [known["status"] for known in await all_items(store)] == ["refuted", "active"]


async def test_items_that_contradict_each_other_are_marked_until_one_is_confirmed() -> None:
    store = await holding(item(1, "Look twice."))
    await run(store, drawn("Never look twice.", relation="contradicts", known=1), applies=lambda _: False)
    first, second = await all_items(store)
    assert [(known["status"], known["against"]) for known in (first, second)] == [
        ("contested", [second["id"]]),
        ("contested", [first["id"]]),
    ]
    await run(store)  # which was shown both
    assert [known["status"] for known in await all_items(store)] == ["contested", "contested"]
    await run(store, drawn("Never look twice."), applies=lambda _: False)
    assert [known["status"] for known in await all_items(store)] == ["refuted", "active"]
    assert [known["id"] for known in await (await items_of(store)).nearest("Why?", 5)] == [second["id"]]


@pytest.mark.parametrize("number", [-1, 0, 99])
async def test_an_item_that_was_never_shown_cannot_be_changed(number: int) -> None:
    store = await holding(item(1))
    for relation in ("same", "refines", "contradicts"):
        await run(store, drawn(f"New {relation}.", relation=relation, known=number), applies=lambda _: False)
    known = (await all_items(store))[0]
    assert (known["seen"], known["history"], known["status"]) == (1, [], "active")


async def test_what_fails_sinks_and_is_not_shown_any_more() -> None:
    store = await holding(item(1), item(2))
    for _ in range(7):
        await run(store, solved=False)
    failing = await all_items(store)
    assert [known["failed"] for known in failing] == [7, 7]
    assert await (await items_of(store)).nearest("why something helps", 5) == []


async def test_what_failed_once_ranks_below_what_did_not() -> None:
    store = await holding(item(1), item(2))
    items = await items_of(store)
    for worse in (1, 2):
        failed = {f"{worse:032x}": Event(what="shown", at=float(worse), solved=False)}
        for number in range(worse):
            await items.record(f"run {worse} {number}", failed)
        near = await items.nearest("why something helps", 5)
        assert near[-1]["title"] == f"Item {worse}"


def test_trust_falls_with_failures_and_rises_with_successes() -> None:
    events: list[Event] = [
        Event(what="shown", at=float(n), solved=solved) for n, solved in enumerate((False, None, True))
    ]
    grown = [trust(folded(item(1), events[:end])) for end in range(4)]
    assert grown[0] == 1 > grown[3] > grown[1] == grown[2]


def test_events_fold_in_the_order_of_time() -> None:
    events = [
        Event(what="edited", at=3.0, texts={"advice": "Look thrice."}),
        Event(what="refined", at=1.0, texts={"advice": "Also left."}),
        Event(what="refined", at=4.0, texts={"advice": "Also right."}),
    ]
    known = folded(item(1), events)
    assert known == folded(item(1), reversed(events))
    assert advice_of(known) == "Look thrice.\nAlso right."
    assert known["history"][1]["before"] == {"advice": "Look twice."}


async def test_a_kill_between_an_item_and_its_mark_loses_no_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    store = await holding(item(1))
    items, opposed = await items_of(store), DrawnItem(**drawn("Look once.", relation="contradicts", known=1))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Items, "record", killed)
        with pytest.raises(KeyboardInterrupt):
            await curate(items, "run 1", opposed, [item(1)], "success")
    await curate(items, "run 1", opposed, [item(1)], "success")
    assert [known["status"] for known in await all_items(store)] == ["contested", "contested"]
