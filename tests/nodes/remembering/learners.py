"""Scripted models that know which items apply and what a run has taught, beside a strategy's own script."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.store.memory import InMemoryStore

from reflective_agents.memory.items import Items
from reflective_agents.nodes.remembering.experience import experience_of
from reflective_agents.state.experience import Item, new_item
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, Script

LESSON = re.compile(r'<lesson number="(\d+)"[^>]*>\n(.*?)\n</lesson>', re.DOTALL)


def drawn(advice: str, **fields: Any) -> dict[str, Any]:
    """An item as a model draws it."""
    usual = {
        "title": "A title",
        "applies_when": "a question why something helps",
        "evidence": "The run.",
        "kind": "success",
    }
    return {**usual, "advice": advice, **fields}


def learning(
    script: Script,
    *,
    applies: Callable[[str], bool] = lambda _: True,
    draws: Sequence[Mapping[str, Any]] = (),
    used: Sequence[int] = (),
) -> FakeChatModel:
    """A model that says which conditions apply, and draws these items from each run."""

    def reply(request: Request) -> Reply | Sequence[Reply]:
        if request.schema == "Applying":
            return {"applies": [int(number) for number, text in LESSON.findall(request.text) if applies(text)]}
        if request.schema == "Drawn":
            return {"items": [dict(item) for item in draws], "used": [*used]}
        return script(request)

    return FakeChatModel(reply=reply)


async def items_of(store: InMemoryStore, name: str = "e") -> Items:
    """The items of a name."""
    return await Items.open(store, experience_of(name), "lexical")


async def all_items(store: InMemoryStore, name: str = "e") -> list[Item]:
    """All items of a name, by their creation."""
    return [item async for item in (await items_of(store, name)).everything()]


def item(number: int, advice: str = "Look twice.", applies_when: str = "a question why something helps") -> Item:
    """An item with an id of its own."""
    return new_item(f"{number:032x}", f"Item {number}", applies_when, advice, kind="success", created=float(number))


async def holding(*items: Item, name: str = "e") -> InMemoryStore:
    """A store in which these items were learned."""
    store = InMemoryStore()
    await (await items_of(store, name)).add(items)
    return store
