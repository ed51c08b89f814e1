"""Items curated, not piled up: what is drawn anew is counted, added or marked, and nothing is rewritten as a whole
(ACE, arXiv 2510.04618)."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reflective_agents.state.experience import DrawnItem, Event, Item, ItemKind, new_item, pieces_of_advice, plain_text
from reflective_agents.state.memories import memory_id

if TYPE_CHECKING:
    from reflective_agents.memory.items import Items


async def curate(items: "Items", run: str, drawn: DrawnItem, known: Sequence[Item], verdict: ItemKind | None) -> str:
    """Add what was drawn to what is known: counted where it is known, added to what it refines, marked where it
    contradicts, else as an item of its own. Done again it changes nothing.

    Args:
        items: Where it is kept.
        run: What names it among all that was ever drawn.
        drawn: What was drawn.
        known: The items that the model was shown, in order.
        verdict: What the verification of the run says of it.

    Returns:
        The id of the item that holds it.
    """
    now = time.time()
    own = memory_id(f"item {run}")
    other = known[drawn.known - 1] if 0 < drawn.known <= len(known) else None
    if await items.get([own]):
        await _contest(items, run, drawn, own, other)  # a kill may have come between the item and its mark
        return own
    same = _with_advice(drawn.advice, known)
    if same is None and drawn.relation == "same":
        same = other
    if same:
        await _count(items, run, same, now)
        return same["id"]
    if other and drawn.relation == "refines":
        texts = {"advice": drawn.advice, "evidence": drawn.evidence}
        await items.record(f"{run} refined", {other["id"]: Event(what="refined", at=now, texts=texts)})
        return other["id"]
    kind = "failure" if verdict == "failure" else drawn.kind
    texts = drawn.model_dump(include={"title", "applies_when", "advice", "evidence"})
    await items.add([new_item(own, **texts, kind=kind, created=now)])
    await _contest(items, run, drawn, own, other)
    return own


def _with_advice(advice: str, known: Sequence[Item]) -> Item | None:
    """Return the first item that gives an advice already; None if none does."""
    words = plain_text(advice)
    for item in known:
        if words in map(plain_text, pieces_of_advice(item)):
            return item
    return None


async def _contest(items: "Items", run: str, drawn: DrawnItem, own: str, other: Item | None) -> None:
    """Mark a new item and the one that it contradicts, if it does."""
    if other and other["id"] != own and drawn.relation == "contradicts":
        now = time.time()
        events = {
            own: Event(what="contradicted", at=now, by=other["id"]),
            other["id"]: Event(what="contradicted", at=now, by=own),
        }
        await items.record(f"{run} contradicted", events)


async def _count(items: "Items", run: str, item: Item, now: float) -> None:
    await items.record(f"{run} drawn", {item["id"]: Event(what="drawn", at=now)})
    if item["status"] == "contested":
        await confirm(items, run, item, now)


async def confirm(items: "Items", run: str, winner: Item, now: float) -> None:
    """Confirm an item, which refutes what contradicts it."""
    events = {winner["id"]: Event(what="confirmed", at=now)}
    for other in await items.get(winner["against"]):
        events[other["id"]] = Event(what="refuted", at=now, by=winner["id"])
    await items.record(f"{run} confirmed", events)
