"""A vector store of LangChain's as the index of a memory's texts, beside any store of LangGraph's."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from urllib.parse import unquote

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from langgraph.store.base import BaseStore, Op, PutOp, Result, SearchItem, SearchOp

from reflective_agents.memory.layout import Namespace, texts_of
from reflective_agents.state.errors import Misuse


class WithVectorStore(BaseStore):
    """A store that keeps everything in another one, and lets a vector store find the texts of memories.

        store = WithVectorStore(InMemoryStore(), lambda owner: InMemoryVectorStore(OpenAIEmbeddings()))
        graph = builder.compile(store=store)  # to be run with ranking="store"

    Each owner has a vector store of their own, so that no filter has to keep them apart. Its documents have the ids of
    the memories; adding one anew has to replace it. What is in a vector store and no memory, since a process was killed
    between the two, is passed over. Only the order in which it finds texts counts: what its scores mean is not settled.
    """

    def __init__(self, store: BaseStore, vector_store_of: Callable[[str], VectorStore]) -> None:
        """Put a vector store beside a store.

        Args:
            store: Where the memories lie, set up already.
            vector_store_of: Opens the vector store of an owner (`MemoryStream.open`); called once for each.
        """
        self._store = store
        self._vector_store_of = vector_store_of
        self._opened: dict[str, VectorStore] = {}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do these operations in the other store alone; a memory never does that."""
        return self._store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do these operations: texts are in the vector store before they are memories, and until they are none."""
        added, removed = defaultdict[str, list[Document]](list), defaultdict[str, list[str]](list)
        searches: dict[int, SearchOp] = {}
        others: list[Op] = []
        for number, op in enumerate(ops):
            if isinstance(op, SearchOp) and op.query and texts_of(op.namespace_prefix):
                searches[number] = op
                continue
            others.append(op)
            if isinstance(op, PutOp) and texts_of(op.namespace):
                owner = texts_of(op.namespace)
                if op.value is None:
                    removed[owner].append(op.key)
                else:
                    added[owner].append(Document(op.value["text"], id=op.key))
        for owner, documents in added.items():
            await self._of(owner).aadd_documents(documents)
        results = [*await self._store.abatch(others)] if others else []
        for owner, ids in removed.items():
            await self._of(owner).adelete(ids)
        for number, search in searches.items():
            results.insert(number, await self._search(search))
        return results

    def _of(self, owner: str) -> VectorStore:
        if owner not in self._opened:
            self._opened[owner] = self._vector_store_of(unquote(owner, errors="surrogatepass"))
        return self._opened[owner]

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        if op.filter:
            raise Misuse("a vector store knows texts alone: search them without a filter, or without a query")
        most = op.offset + op.limit
        found = await self._of(texts_of(op.namespace_prefix)).asimilarity_search(op.query or "", k=most)
        return _ranked(op.namespace_prefix, found[:most])[op.offset :]


def _ranked(namespace: Namespace, found: Sequence[Document]) -> list[SearchItem]:
    now = datetime.now(UTC)
    items: list[SearchItem] = []
    for rank, document in enumerate(found):
        if document.id:
            content = {"text": document.page_content}
            items.append(SearchItem(namespace, document.id, content, now, now, score=1 - rank / len(found)))
    return items
