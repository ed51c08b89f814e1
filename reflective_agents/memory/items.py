"""The items of one name, in LangGraph's store: looked up by when they apply, and changed by events only.

    ("memory", <owner>, "item")         <id> -> the item as it was drawn or imported
    ("memory", <owner>, "events", <id>) <run> -> what has happened to it (`state.experience.Event`)

What an item applies to is a reflection of a memory stream under the same id, which makes the look-up. No item is ever
read, changed and written back: an event is named by the run that it comes from, so that one done again after a kill
counts once, and what two processes write at the same time counts twice.
"""

import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, SearchItem, SearchOp

from reflective_agents.memory import rankings
from reflective_agents.memory.layout import EVERYTHING, Layout, read, search, write
from reflective_agents.memory.stream import AT_ONCE, MemoryStream
from reflective_agents.models.meter import Meter
from reflective_agents.state.errors import Misuse
from reflective_agents.state.experience import LONGEST_TEXT, Event, Item, folded, new_item, trust
from reflective_agents.state.memories import Kind, Memory, new_memory
from reflective_agents.text.clean import clean

MOST = 10_000
"""Items of one name; beyond that those are forgotten that were not shown for the longest time."""
MOST_EVENTS = 100
"""Events of one item that are alike; beyond that the oldest are forgotten, so that the latest ones count. What somebody
has edited stays."""
WIDER = 4
"""How many times as many items are looked at where too few of the nearest may be shown."""
LEAST_TRUST = 0.25
"""Below, an item is not looked up any more: seven runs that were shown it failed, and none was solved."""
RELEVANCE = rankings.named("hybrid", recency=0, importance=0)
_KIND: tuple[Kind, ...] = ("reflection",)
_FROM_TASK = "from the task: "


class Items:
    """The items of one name.

    items = await Items.open(store, "experience/sums")
    await items.add([new_item("1" * 32, "Units", "sums of lengths", "Convert first.", kind="success", created=0.0)])
    for item in await items.nearest("How long are 3 m and 20 cm together?", 5):
        print(item["advice"])
    """

    def __init__(self, store: BaseStore, stream: MemoryStream) -> None:
        self._store, self._stream, self._layout = store, stream, Layout(stream.owner)

    @classmethod
    async def open(
        cls,
        store: BaseStore,
        owner: str,
        embeddings: str | Embeddings | None = None,
        *,
        meter: Meter | None = None,
        most: int = MOST,
    ) -> "Items":
        """Open the items of an owner.

        Args:
            store: Where they are kept.
            owner: Whose they are.
            embeddings: What makes vectors of texts, as for `models.embeddings.get_embeddings`.
            meter: The limits of the run.
            most: Most items kept, from 1.

        Raises:
            Misuse, UnknownModel, MissingKey: as `MemoryStream.open`.
        """
        return cls(store, await MemoryStream.open(store, owner, embeddings, meter=meter, max_memories=most))

    async def count(self) -> int:
        """Count the items."""
        return await self._stream.count()

    async def add(self, items: Sequence[Item]) -> list[str]:
        """Add items and return the ids that are new; those that are known already are left as they are.

        Raises:
            ModelFailed, LimitReached: if the vectors cannot be had; then nothing is added that is ever found.
        """
        ids = [item["id"] for item in items]
        known = {memory["id"] for memory in await self._stream.get(ids)}
        new = [item for item in items if item["id"] not in known]
        for start in range(0, len(new), AT_ONCE):
            part = new[start : start + AT_ONCE]
            writes = [write(self._items, item["id"], {**item}) for item in part]
            await self._store.abatch(writes)
        change = await self._stream.add([_memory(item) for item in new])
        for item_id in change.forgotten:
            await self._clear(item_id)
        return change.added

    async def get(self, ids: Sequence[str]) -> list[Item]:
        """Read the items with these ids, in their order; those that do not exist are left out."""
        return await self._read(await self._stream.get(ids))

    async def everything(self) -> AsyncIterator[Item]:
        """Yield all items, the oldest first."""
        async for part in self._parts():
            for item in await self._read(part):
                yield item

    async def wordings(self) -> AsyncIterator[Item]:
        """Yield all items, the oldest first, as they were drawn and somebody has edited them; of all else that has
        happened to them, which takes longest to read, nothing is known."""
        edits = defaultdict[str, list[Event]](list)
        edited = SearchOp(self._layout.part("events"), {"what": "edited"}, limit=EVERYTHING, refresh_ttl=False)
        [rows] = cast(list[list[SearchItem]], await self._store.abatch([edited]))
        for row in rows:
            edits[row.namespace[-1]].append(cast(Event, row.value))
        async for part in self._parts():
            for item in await self._drawn(part):
                yield folded(item, edits[item["id"]])

    async def _parts(self) -> AsyncIterator[list[Memory]]:
        part: list[Memory] = []
        async for memory in self._stream.everything():
            if memory["kind"] in _KIND:
                part.append(memory)
            if len(part) >= AT_ONCE:
                yield part
                part = []
        yield part

    async def nearest(self, text: str, k: int) -> list[Item]:
        """Look up the items whose condition fits a text best, best first: those that fail sink, refuted ones are left
        out.

        Args:
            text: What is looked for.
            k: How many at most.

        Raises:
            ModelFailed, LimitReached: if the vector of the text cannot be had.
        """
        looked_at, known = k, await self.count()
        items = await self._usable(text, looked_at)
        while len(items) < k and looked_at < known:
            looked_at *= WIDER
            items = await self._usable(text, looked_at)
        return items[:k]

    async def _usable(self, text: str, k: int) -> list[Item]:
        now = time.time()
        found = await self._stream.retrieve(text, k=k, now=now, ranking=RELEVANCE, renew=False, kinds=_KIND)
        fit = {scored.memory["id"]: scored.relevance for scored in found}
        items = await self._read([scored.memory for scored in found])
        usable = list(filter(_is_usable, items))
        usable.sort(key=lambda item: fit[item["id"]] * trust(item), reverse=True)
        return usable

    async def record(self, run: str, events: Mapping[str, Event]) -> None:
        """Write what a run has done to items, one event each; written again under the same run it counts once. Items
        that were forgotten meanwhile are passed over.

        Args:
            run: What names the event among those of an item, such as the id of a run and what it did.
            events: The events, by the ids of the items.
        """
        puts: list[Op] = []
        shown: dict[str, float] = {}
        known = [memory["id"] for memory in await self._stream.get(events)]
        for item_id in known:
            event = events[item_id]
            puts.append(self._put(run, item_id, event))
            if event["what"] == "shown":
                shown[item_id] = event["at"]
        await self._store.abatch(puts)
        await self._trim(known)
        if shown:
            await self._stream.renew(shown)

    async def count_drawn(self, drawn: Iterable[tuple[str, str, float]]) -> None:
        """Count items that were drawn elsewhere: what names the event, the id of the item, and when."""
        events = [(run, item_id, Event(what="drawn", at=at)) for run, item_id, at in drawn]
        for start in range(0, len(events), AT_ONCE):
            part = events[start : start + AT_ONCE]
            await self._store.abatch([self._put(*event) for event in part])
            await self._trim({item_id for _, item_id, _ in part})

    async def _trim(self, ids: Iterable[str]) -> None:
        deletions: list[PutOp] = []
        for rows in await self._events(ids):
            deletions += [write(row.namespace, row.key, None) for row in _superfluous(rows)]
        if deletions:
            await self._store.abatch(deletions)

    async def edit(self, run: str, item_id: str, texts: Mapping[str, str], at: float) -> None:
        """Give an item other texts, by their fields; what they were stays in its history.

        Raises:
            Misuse: if there is no such item, or a text is empty or too long.
            ModelFailed, LimitReached: if its vector cannot be had; then nothing is changed.
        """
        texts = {field: clean(text).strip() for field, text in texts.items()}
        if not all(0 < len(text) <= LONGEST_TEXT for text in texts.values()):
            raise Misuse(f"a text of an item has 1 to {LONGEST_TEXT} characters")
        memories = await self._stream.get([item_id])
        if not memories:
            raise Misuse(f"there is no item {item_id} here")
        [item] = await self._drawn(memories)
        await self._store.abatch([write(self._items, item_id, {**item})])  # which an old lesson does not have yet
        if condition := texts.get("applies_when"):
            await self._stream.edit(item_id, condition)
        [rows] = await self._events([item_id])
        others = [row.value["at"] for row in rows if row.key != run]
        latest = max(others, default=at)
        at = at if latest < at else math.nextafter(latest, math.inf)  # also where the clock was set back meanwhile
        await self.record(run, {item_id: Event(what="edited", at=at, texts={**texts})})

    async def forget(self, item_id: str) -> None:
        """Delete an item for good."""
        await self._clear(item_id)  # first, so that after a kill it is found, and can be forgotten again
        await self._stream.delete(item_id)

    async def forget_all(self) -> None:
        """Delete all items of this owner."""
        await self._stream.forget_all()

    @property
    def _items(self) -> tuple[str, ...]:
        return self._layout.part("item")

    def _put(self, run: str, item_id: str, event: Event) -> PutOp:
        return write(self._of(item_id), run, {**event})

    def _of(self, item_id: str) -> tuple[str, ...]:
        return (*self._layout.part("events"), item_id)

    async def _clear(self, item_id: str) -> None:
        rows = await search(self._store, self._of(item_id))
        deletions = [write(row.namespace, row.key, None) for row in rows]
        await self._store.abatch([*deletions, write(self._items, item_id, None)])

    async def _read(self, memories: Sequence[Memory]) -> list[Item]:
        drawn = await self._drawn(memories)
        rows_of_each = await self._events([memory["id"] for memory in memories])
        items: list[Item] = []
        for item, rows in zip(drawn, rows_of_each, strict=True):
            events = [cast(Event, row.value) for row in rows]
            items.append(folded(item, events))
        return items

    async def _drawn(self, memories: Sequence[Memory]) -> list[Item]:
        """Return items as they were drawn, before anything has happened to them."""
        reads = [GetOp(self._items, memory["id"], refresh_ttl=False) for memory in memories]
        rows = await read(self._store, reads)
        pairs = zip(rows, memories, strict=True)
        return [cast(Item, row.value) if row else _of_old_lesson(memory) for row, memory in pairs]

    async def _events(self, ids: Iterable[str]) -> list[list[SearchItem]]:
        searches: list[Op] = [SearchOp(self._of(item_id), limit=EVERYTHING, refresh_ttl=False) for item_id in ids]
        return cast(list[list[SearchItem]], await self._store.abatch(searches)) if searches else []


def _is_usable(item: Item) -> bool:
    return item["status"] != "refuted" and trust(item) >= LEAST_TRUST


def _superfluous(rows: Sequence[SearchItem]) -> list[SearchItem]:
    """Return the oldest events of an item that has too many that are alike."""
    alike = defaultdict[str, list[SearchItem]](list)
    for row in sorted(rows, key=lambda row: row.value["at"]):
        alike[row.value["what"]].append(row)
    superfluous: list[SearchItem] = []
    for what, events in alike.items():
        if what != "edited":
            superfluous += events[:-MOST_EVENTS]
    return superfluous


def _memory(item: Item) -> Memory:
    """Return what is looked up for an item: when it applies."""
    memory = new_memory(item["applies_when"], created=item["created"], kind="reflection")
    return {**memory, "id": item["id"]}


def _of_old_lesson(memory: Memory) -> Item:
    """Return a lesson of an earlier version as an item: it applies to tasks like the one it was drawn from."""
    text = memory["text"].removesuffix(")")
    lesson, condition = text, text
    if _FROM_TASK in text:
        lesson, _, task = text.rpartition(_FROM_TASK)
        condition = f"a task like this: {task}"
    lesson = lesson.removesuffix("untested; ").removesuffix("(").strip()[:LONGEST_TEXT].strip() or "..."
    return new_item(
        memory["id"],
        lesson[:60].strip(),
        condition[:LONGEST_TEXT].strip(),
        lesson,
        kind="failure",
        created=memory["created"],
    )
