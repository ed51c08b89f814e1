"""Where a memory lies in LangGraph's store. Each item is written whole; none is ever read, changed and written back.

    ("memory", <owner>, "text")           <id> -> {text}, and of a fact {about, since}
    ("memory", <owner>, "index", <digit>) <id> -> {kind, created, importance, evidence, vector, words}, and where there
                                                  are {speaker, conversation, supersedes, topic, asks}
    ("memory", <owner>, "access")         <id> -> {at}, once the memory has been retrieved
    ("memory", <owner>, "mark")           <id> -> {created}: the observations up to this one were reflected on
    ("memory", <owner>, "head")           <writer> -> {written, touched}: what a process has written last
    ("memory", <owner>, "about")          "embeddings" -> {name}: what the vectors were made with

The texts alone are in the store's own index, if it has one. Ours is apart from the texts, so that a process can start
without reading them, and in sixteen parts by the first digit of the id, so that no part keeps an event loop busy for
long. A vector is float16 in base64: 1 KB for 384 numbers, half of float32, and its cosines are off by less than 0.0005.
The words are hashes and counts, 5 bytes each, in base64.
"""

import base64
from collections.abc import Iterable, Sequence
from urllib.parse import quote

import numpy as np
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem, SearchOp
from numpy.typing import NDArray

from reflective_agents.memory.entries import Entry
from reflective_agents.memory.index import Index
from reflective_agents.memory.scoring import Halves
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.memories import Memory

Namespace = tuple[str, ...]
DIGITS = "0123456789abcdef"
EVERYTHING = 1_000_000_000
LONGEST_NAME = 1000


_INDEXED = ("kind", "created", "importance", "evidence", "speaker", "conversation", "supersedes", "topic")
_CONTENT = ("text", "about", "since")


def as_part(name: str) -> str:
    """Return a name as a part of a namespace, which some stores separate with dots; unquoted it is the name again."""
    return quote(name, safe="", errors="surrogatepass").replace(".", "%2E")


def texts_of(namespace: Namespace) -> str:
    """Return whose texts lie in a namespace, as the part of it that names them; nobody's in any other."""
    match namespace:
        case ("memory", owner, "text"):
            return owner
    return ""


class Layout:
    """The namespaces of one owner, and the items in them."""

    def __init__(self, owner: str) -> None:
        name = as_part(owner)
        if not 0 < len(name) <= LONGEST_NAME:
            raise Misuse(f"the owner of a memory is a text of 1 to {LONGEST_NAME} bytes")
        self.root: Namespace = ("memory", name)

    def part(self, name: str) -> Namespace:
        """Return the namespace of one kind of items."""
        return (*self.root, name)

    def index(self, digit: str) -> Namespace:
        """Return the namespace of the index items whose ids begin with a digit."""
        return (*self.root, "index", digit)

    def put(self, memory: Memory, vector: Halves, words: bytes) -> list[PutOp]:
        """Return the operations that add a memory."""
        indexed = {name: value for name, value in memory.items() if name in _INDEXED}
        if asks(memory["text"]):
            indexed["asks"] = True
        packed = {"vector": _ascii(vector.tobytes()), "words": _ascii(words)}
        content = {name: value for name, value in memory.items() if name in _CONTENT}
        return [
            PutOp(self.part("text"), memory["id"], content, index=["text"]),
            write(self.index(memory["id"][0]), memory["id"], {**indexed, **packed}),
        ]

    def with_words(self, item: Item, words: bytes) -> Item:
        """Add words to an index item of an earlier version, which has none."""
        value = {**item.value, "words": _ascii(words)}
        return Item(
            value=value,
            key=item.key,
            namespace=item.namespace,
            created_at=item.created_at,
            updated_at=item.updated_at,
        )

    def renew(self, accessed: dict[str, float]) -> list[PutOp]:
        """Return the operations that set when memories were last accessed."""
        return [write(self.part("access"), memory_id, {"at": float(at)}) for memory_id, at in accessed.items()]

    def delete(self, ids: Iterable[str]) -> list[PutOp]:
        """Return the operations that delete memories."""
        operations: list[PutOp] = []
        for memory_id in ids:
            namespaces = (self.part("text"), self.index(memory_id[0]), self.part("access"))
            operations += [write(namespace, memory_id, None) for namespace in namespaces]
        return operations

    def get(self, name: str, ids: Iterable[str]) -> list[GetOp]:
        """Return the operations that read items by their ids, from the texts, the accesses or the marks."""
        return [GetOp(self.part(name), memory_id, refresh_ttl=False) for memory_id in ids]

    def get_index(self, ids: Iterable[str]) -> list[GetOp]:
        """Return the operations that read index items by their ids."""
        return [GetOp(self.index(memory_id[0]), memory_id, refresh_ttl=False) for memory_id in ids]


def rounded(vectors: NDArray[np.float32]) -> Halves:
    """Round vectors to what is stored of them."""
    return vectors.astype(np.float16)


def write(namespace: Namespace, key: str, value: JsonObject | None) -> PutOp:
    """Return the operation that writes an item, or deletes it for a value of None, past the store's own index."""
    return PutOp(namespace, key, value, index=False)


async def read(store: BaseStore, operations: Iterable[GetOp]) -> list[Item | None]:
    """Read several items; None in the place of each that does not exist."""
    return [item if isinstance(item, Item) else None for item in await store.abatch(operations)]


async def search(
    store: BaseStore, namespace: Namespace, limit: int = EVERYTHING, query: str | None = None
) -> Sequence[SearchItem]:
    """Return the items of a namespace; those that fit a query best first, with their scores, if the store has an index
    of its own."""
    (items,) = await store.abatch([SearchOp(namespace, limit=limit, query=query, refresh_ttl=False)])
    return items  # type: ignore[return-value]  # what a search returns


def unpack(items: Sequence[Item]) -> tuple[list[Entry], Halves]:
    """Read index items: the entries of the index, and a matrix with one row per entry."""
    entries = [entry_of(item.key, item.value, base64.b64decode(item.value["words"])) for item in items]
    if not items:
        return entries, np.zeros((0, 0), np.float16)
    packed = b"".join(base64.b64decode(item.value["vector"]) for item in items)
    return entries, np.frombuffer(packed, np.float16).reshape(len(items), -1)


def asks(text: str) -> bool:
    """Tell whether a text ends with a question."""
    return text.rstrip().endswith(("?", "\uff1f", "\u061f"))


def entry_of(memory_id: str, value: JsonMapping, words: bytes) -> Entry:
    """Return what the index holds of a memory, or of an index item, with its packed words."""
    return Entry(
        memory_id,
        value["kind"],
        value["created"],
        value["importance"],
        tuple(value["evidence"]),
        value.get("speaker", ""),
        value.get("conversation", ""),
        tuple(value.get("supersedes", ())),
        words,
        value.get("topic"),
        asks(value["text"]) if "text" in value else value.get("asks", False),
    )


def memory_of(memory_id: str, stored: JsonMapping, index: Index) -> Memory:
    """Return a memory as its text item and the index hold it."""
    entry, until = index.entry(memory_id), index.until(memory_id)
    memory = Memory(
        id=memory_id,
        kind=entry.kind,
        text=stored["text"],
        created=entry.created,
        accessed=index.accessed(memory_id),
        importance=entry.importance,
        evidence=list(entry.evidence),
        archived=index.archived(memory_id),
    )
    if entry.speaker:
        memory["speaker"] = entry.speaker
    if entry.conversation:
        memory["conversation"] = entry.conversation
    if stored.get("about"):
        memory["about"] = stored["about"]
    if entry.topic:
        memory["topic"] = entry.topic
    if stored.get("since"):
        memory["since"] = stored["since"]
    if entry.supersedes:
        memory["supersedes"] = list(entry.supersedes)
    if until is not None:
        memory["until"] = until
    return memory


def _ascii(data: bytes) -> str:
    return base64.b64encode(data).decode()
