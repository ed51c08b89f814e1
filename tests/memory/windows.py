"""What the tests of the memory share: embeddings that can be worked out by hand, and other processes' views."""

from collections.abc import Iterable
from typing import Any

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore

from reflective_agents.memory.stream import MemoryStream

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class Letters(Embeddings):
    """How often each letter occurs: a vector that can be worked out by hand, of no particular length."""

    model = "letters"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.lower().count(letter)) for letter in ALPHABET] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Window(BaseStore):
    """Another process's connection to the same store: what is opened through it shares nothing else.

    A write fails if `fails` says so: "before" it takes effect, or "after".
    """

    def __init__(self, store: BaseStore) -> None:
        self.store = store
        self.fails = ""
        self.searched: list[tuple[str, ...]] = []
        self.requests = 0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise NotImplementedError("a memory never blocks")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        self.requests += 1
        self.searched += [op.namespace_prefix for op in ops if isinstance(op, SearchOp)]
        writing = any(isinstance(op, PutOp) for op in ops)
        if writing and self.fails == "before":
            raise ConnectionError("lost")
        results = await self.store.abatch(ops)
        if writing and self.fails == "after":
            raise ConnectionError("lost")
        return results


def items(store: InMemoryStore) -> dict[tuple[str, ...], Any]:
    """Everything that is stored, by namespace and key."""
    return {(*found.namespace, found.key): found.value for found in store.search((), limit=100_000)}


async def open_window(store: BaseStore, owner: str = "anna", **settings: Any) -> MemoryStream:
    """An agent's memory, as a process sees it that has not seen it before."""
    return await MemoryStream.open(Window(store), owner, Letters(), **settings)
