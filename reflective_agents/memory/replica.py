"""What this process knows of one agent's memory, and how it keeps up with what other processes write.

Every commit of a process tells, in one item of its own (its head), how many ids it has touched so far, and the last of
them. A reader that finds a head further than it has seen reads these ids again; one that cannot tell what it has missed
reads the index anew. No item is written by two processes that could spoil it for each other.
"""

import asyncio
import weakref
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

from langgraph.store.base import BaseStore, Item, PutOp

from reflective_agents.memory.index import Index
from reflective_agents.memory.layout import DIGITS, Layout, read, search, unpack, write
from reflective_agents.memory.postings import pack
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.memories import BEGINNING, Mark
from reflective_agents.text.stems import stems

OLD_AT_ONCE = 500
"""Memories of an earlier version that are brought up to date in one request."""
MOST_TOUCHED = 512
"""Ids that a head tells; who is further behind reads the index anew."""
MOST_HEADS = 32
"""Heads of one memory, most of them of processes that are gone, beyond which they are replaced by one."""
MOST_REPLICAS = 64
"""Memories of one store that are kept at hand."""


class Replica:
    """One agent's memory in one process: its index, and what has been seen of the store.

    Attributes:
        layout: Where the memory lies in the store.
        index: What is known of it.
        about: What its vectors were made with; None as long as it has none.
        mark: Up to where the observations were reflected on.
    """

    def __init__(self, owner: str) -> None:
        self.layout = Layout(owner)
        self._loop = weakref.ref(asyncio.get_running_loop())
        self._lock = asyncio.Lock()
        self._whole = False
        self.begin_anew()

    def begin_anew(self) -> None:
        """Start over as an empty memory and a new writer, after everything was deleted."""
        self._writer = uuid4().hex
        self._written = 0
        self._touched: deque[str] = deque(maxlen=MOST_TOUCHED)
        self._clear()

    def _clear(self) -> None:
        self.index = Index()
        self.about: str | None = None
        self.mark = BEGINNING
        self._seen: dict[str, int] = {}

    def is_of_this_loop(self) -> bool:
        """Tell whether this replica was made in the running event loop."""
        return self._loop() is asyncio.get_running_loop()

    @asynccontextmanager
    async def current(self, store: BaseStore) -> AsyncIterator[Index]:
        """Hold the up-to-date memory for the duration of the body; if the body fails, the index is read again next
        time."""
        async with self._lock:
            await self._catch_up(store)
            self._whole = False
            yield self.index
            self._whole = True

    async def commit(self, store: BaseStore, changes: Iterable[PutOp], touched: Sequence[str]) -> None:
        """Write changes that the index shows already, all at once where the store can; within `current` only.

        Equal texts are written ahead, one in a request: LangGraph's InMemoryStore refuses a batch in which a text that
        it is to index comes twice. A text is no memory before the rest of it is written.

        Args:
            store: Where to.
            changes: What to write.
            touched: Ids of the memories that change.
        """
        self._written += len(touched)
        self._touched.extend(touched)
        value = {"written": self._written, "touched": list(self._touched)}
        head = write(self.layout.part("head"), self._writer, value)
        for batch in _batches([*changes, head]):
            # In the same order everywhere, so that two processes never wait for each other's rows.
            ordered = sorted(batch, key=lambda change: (change.namespace, change.key))
            await store.abatch(ordered)
        self._seen[self._writer] = self._written

    async def _catch_up(self, store: BaseStore) -> None:
        heads = {item.key: item.value for item in await search(store, self.layout.part("head"))}
        touched = self._missed(heads) if self._whole else None
        if touched is None:
            await self._load(store, heads)
        else:
            if touched:
                await self._read_again(store, touched)
            self._seen = {writer: head["written"] for writer, head in heads.items()}

    def _missed(self, heads: Mapping[str, JsonMapping]) -> list[str] | None:
        """Return the ids that other writers have changed since last time; None if they cannot be determined."""
        if not self._seen.keys() <= heads.keys():
            return None
        missed: list[str] = []
        for writer, head in heads.items():
            touched: list[str] = head["touched"]
            news = head["written"] - self._seen.get(writer, 0)
            if not 0 <= news <= len(touched):
                return None
            missed += touched[len(touched) - news :]
        return list(dict.fromkeys(missed))

    async def _load(self, store: BaseStore, heads: Mapping[str, JsonMapping]) -> None:
        self._clear()
        self._seen = {writer: head["written"] for writer, head in heads.items()}
        if len(heads) > MOST_HEADS:
            await self._replace(store, heads)
        for digit in DIGITS:
            await self._absorb(store, await search(store, self.layout.index(digit)))
        await asyncio.to_thread(self.index.arrange)
        accessed = await search(store, self.layout.part("access"))
        self.index.renew({item.key: item.value["at"] for item in accessed})
        for item in await search(store, self.layout.part("mark")):
            self.mark = max(self.mark, Mark(item.value["created"], item.key))
        for item in await search(store, self.layout.part("about")):
            self.about = item.value["name"]

    async def _absorb(self, store: BaseStore, items: Sequence[Item]) -> None:
        """Add index items to what is known; those of an earlier version get their words first, once and for all."""
        items = [*items]
        for start in range(0, len(items), OLD_AT_ONCE):
            part = items[start : start + OLD_AT_ONCE]
            if any("words" not in item.value for item in part):
                items[start : start + OLD_AT_ONCE] = await self._with_words(store, part)
        await asyncio.to_thread(lambda: self.index.add(*unpack(items)))

    async def _with_words(self, store: BaseStore, items: Sequence[Item]) -> list[Item]:
        texts = await read(store, self.layout.get("text", [item.key for item in items]))
        contents = [item.value["text"] if item else "" for item in texts]
        counted = await asyncio.to_thread(stems, contents)
        updated = [self.layout.with_words(item, pack(words)) for item, words in zip(items, counted, strict=True)]
        writes = [write(item.namespace, item.key, item.value) for item in updated]
        await store.abatch(writes)
        return updated

    async def _replace(self, store: BaseStore, heads: Iterable[str]) -> None:
        """Replace all heads by one that nobody can follow, so that everybody else reads the index anew, once."""
        part, heir = self.layout.part("head"), uuid4().hex
        deletions = [write(part, writer, None) for writer in sorted(heads)]
        await store.abatch([*deletions, write(part, heir, {"written": 1, "touched": []})])
        self._seen = {heir: 1}

    async def _read_again(self, store: BaseStore, ids: list[str]) -> None:
        layout, count = self.layout, len(ids)
        about = layout.get("about", ["embeddings"])
        operations = [*layout.get_index(ids), *layout.get("access", ids), *layout.get("mark", ids), *about]
        items = await read(store, operations)
        self.index.remove(ids)  # what is still there comes back, as it is now
        await self._absorb(store, list(filter(None, items[:count])))
        accessed = filter(None, items[count : 2 * count])
        self.index.renew({item.key: item.value["at"] for item in accessed})
        for item in filter(None, items[2 * count : 3 * count]):
            self.mark = max(self.mark, Mark(item.value["created"], item.key))
        self.about = items[-1].value["name"] if items[-1] else None


def _batches(changes: Iterable[PutOp]) -> list[list[PutOp]]:
    """Split changes so that no batch gives the store's index a text twice; whatever can wait is in the last."""
    batches: list[list[PutOp]] = [[]]
    seen: Counter[str] = Counter()
    for change in changes:
        earlier = 0
        if change.index and change.value:
            text = change.value["text"]
            earlier, seen[text] = seen[text], seen[text] + 1
        if earlier == len(batches):
            batches.append([])
        batches[earlier].append(change)
    return batches[::-1]


_replicas: "weakref.WeakKeyDictionary[BaseStore, dict[str, Replica]]" = weakref.WeakKeyDictionary()


def replica_of(store: BaseStore, owner: str) -> Replica:
    """Return the running event loop's replica of an agent's memory; the most recently used replicas are kept."""
    at_hand = _replicas.setdefault(store, {})
    replica = at_hand.pop(owner, None)
    if replica is None or not replica.is_of_this_loop():
        replica = Replica(owner)
    at_hand[owner] = replica
    while len(at_hand) > MOST_REPLICAS:
        del at_hand[next(iter(at_hand))]
    return replica
