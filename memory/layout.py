"""Where a memory lies in LangGraph's store. Each item is written whole; none is ever read, changed and written back.

    ("memory", <owner>, "text")           <id> -> {text, kind, created, importance, evidence}
    ("memory", <owner>, "index", <digit>) <id> -> {kind, created, importance, evidence, vector}
    ("memory", <owner>, "access")         <id> -> {at}, once the memory has been retrieved
    ("memory", <owner>, "mark")           <id> -> {created}: the observations up to this one were reflected on
    ("memory", <owner>, "head")           <writer> -> {written, touched}: what a process has written last
    ("memory", <owner>, "about")          "embeddings" -> {name}: what the vectors were made with

The index is apart from the texts, so that a process can start without reading them, and in sixteen parts by the first
digit of the id, so that no part keeps an event loop busy for long. A vector is float16 in base64: 1 KB for 384 numbers,
half of float32, and its cosines are off by less than 0.0005.
"""

import base64
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem, SearchOp
from numpy.typing import NDArray

from memory.index import Facts
from state.errors import Misuse
from state.memories import Memory

Namespace = tuple[str, ...]
DIGITS = "0123456789abcdef"
EVERYTHING = 1_000_000_000
LONGEST_NAME = 1000


class Layout:
    """The namespaces of one owner, and the items in them."""

    def __init__(self, owner: str) -> None:
        # A dot separates the parts of a namespace in some stores; a percent sign makes the name readable again.
        name = quote(owner, safe="", errors="surrogatepass").replace(".", "%2E")
        if not 0 < len(name) <= LONGEST_NAME:
            raise Misuse(f"the owner of a memory is a text of 1 to {LONGEST_NAME} bytes")
        self.root: Namespace = ("memory", name)

    def part(self, name: str) -> Namespace:
        """The namespace of one kind of items."""
        return (*self.root, name)

    def index(self, digit: str) -> Namespace:
        """The namespace of the index items whose ids begin with a digit."""
        return (*self.root, "index", digit)

    def put(self, memory: Memory, vector: NDArray[np.float32]) -> list[PutOp]:
        """What adds a memory."""
        facts = {name: memory[name] for name in ("kind", "created", "importance", "evidence")}
        packed = base64.b64encode(vector.astype(np.float16).tobytes()).decode()
        return [
            write(self.part("text"), memory["id"], {"text": memory["text"], **facts}),
            write(self.index(memory["id"][0]), memory["id"], {**facts, "vector": packed}),
        ]

    def renew(self, accessed: dict[str, float]) -> list[PutOp]:
        """What sets when memories were last accessed."""
        return [write(self.part("access"), memory_id, {"at": float(at)}) for memory_id, at in accessed.items()]

    def delete(self, ids: Iterable[str]) -> list[PutOp]:
        """What deletes memories."""
        places = ((memory_id, self.index(memory_id[0])) for memory_id in ids)
        return [
            write(namespace, memory_id, None)
            for memory_id, index in places
            for namespace in (self.part("text"), index, self.part("access"))
        ]

    def get(self, name: str, ids: Iterable[str]) -> list[GetOp]:
        """What reads items by their ids, from the texts, the accesses or the marks."""
        return [GetOp(self.part(name), memory_id, refresh_ttl=False) for memory_id in ids]

    def get_index(self, ids: Iterable[str]) -> list[GetOp]:
        """What reads index items by their ids."""
        return [GetOp(self.index(memory_id[0]), memory_id, refresh_ttl=False) for memory_id in ids]


def rounded(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors as they are after they have been stored and read again."""
    return vectors.astype(np.float16).astype(np.float32)


def write(namespace: Namespace, key: str, value: dict[str, Any] | None) -> PutOp:
    """What writes an item, or deletes it if the value is None; an index of the store's own is left alone."""
    return PutOp(namespace, key, value, index=False)


async def search(store: BaseStore, namespace: Namespace, limit: int = EVERYTHING) -> Sequence[SearchItem]:
    """All items of a namespace."""
    (found,) = await store.abatch([SearchOp(namespace, limit=limit, refresh_ttl=False)])
    return found  # type: ignore[return-value]  # what a search returns


def unpack(items: Sequence[Item]) -> tuple[list[Facts], NDArray[np.float32]]:
    """Read index items: the facts, and a matrix with a row each."""
    facts = [
        Facts(
            item.key, item.value["kind"], item.value["created"], item.value["importance"], tuple(item.value["evidence"])
        )
        for item in items
    ]
    packed = b"".join(base64.b64decode(item.value["vector"]) for item in items)
    vectors = np.frombuffer(packed, np.float16).astype(np.float32)
    return facts, vectors.reshape(len(items), -1) if items else np.zeros((0, 0), np.float32)
