"""A store with an index of its own as the search of a memory."""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.store.base import BaseStore, IndexConfig
from langgraph.store.base.embed import EmbeddingsFunc
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from reflective_agents.graphs.memory import builder
from reflective_agents.memory.layout import texts_of
from reflective_agents.memory.rankings import named
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.memory.vector_store import WithVectorStore
from reflective_agents.nodes.remembering.remember import owner_of
from reflective_agents.state.errors import Misuse
from reflective_agents.state.memories import new_memory
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.testing.fake import FakeChatModel

TOPICS = (("bees", "honey", "hive"), ("tram", "ticket", "stop"), ("figs", "jam", "orchard"))
TEXTS = ["Ada has a hive.", "The ticket was dear.", "An orchard was sold."]
RANKING = named("store")


def by_topic(texts: Sequence[str]) -> list[list[float]]:
    """Vectors in which words of one topic are alike, whatever their letters."""
    return [[0.1, *(float(any(word in text.lower() for word in topic)) for topic in TOPICS)] for text in texts]


class ByTopic(Embeddings):
    """The same as embeddings of LangChain's."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return by_topic(texts)

    def embed_query(self, text: str) -> list[float]:
        return by_topic([text])[0]


def indexed_store(embed: EmbeddingsFunc = by_topic) -> InMemoryStore:
    return InMemoryStore(index=IndexConfig(dims=4, embed=embed))


@pytest_asyncio.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.sqlitevec), "vector store"])
async def searching(request: pytest.FixtureRequest) -> AsyncIterator[BaseStore]:
    """Stores with an index of their own."""
    if request.param == "sqlite":
        async with AsyncSqliteStore.from_conn_string(":memory:", index={"dims": 4, "embed": ByTopic()}) as store:
            await store.setup()
            yield store
    elif request.param == "memory":
        yield indexed_store()
    else:
        yield WithVectorStore(InMemoryStore(), lambda _: InMemoryVectorStore(ByTopic()))


async def stream_of(store: BaseStore, owner: str = "ada") -> MemoryStream:
    stream = await MemoryStream.open(store, owner, "lexical")
    await stream.add([new_memory(text, created=float(number)) for number, text in enumerate(TEXTS)])
    return stream


async def found(stream: MemoryStream, query: str, **more: Any) -> list[str]:
    return [scored.memory["text"] for scored in await stream.retrieve(query, k=1, now=9.0, ranking=RANKING, **more)]


@pytest.mark.parametrize(("query", "text"), [*zip(("honey", "tram", "jam"), TEXTS, strict=True)])
async def test_what_fits_by_the_index_of_the_store_comes_first(searching: BaseStore, query: str, text: str) -> None:
    assert await found(await stream_of(searching), query) == [text]


async def test_an_edited_memory_is_found_by_its_new_text_and_a_deleted_one_is_not(searching: BaseStore) -> None:
    stream = await stream_of(searching)
    hive, ticket, _ = [memory["id"] async for memory in stream.everything()]
    await stream.edit(hive, "Ada has a stop.")
    await stream.delete(ticket)
    assert await found(stream, "tram") == ["Ada has a stop."]
    await stream.delete(hive)
    assert await found(stream, "jam") == [TEXTS[2]]


async def test_users_stay_apart(searching: BaseStore) -> None:
    await stream_of(searching)
    assert await found(await MemoryStream.open(searching, "bob", "lexical"), "honey") == []


async def test_what_is_forgotten_is_gone_from_the_index() -> None:
    vectors = InMemoryVectorStore(ByTopic())
    stream = await stream_of(WithVectorStore(InMemoryStore(), lambda _: vectors))
    assert {memory["text"] for memory in vectors.store.values()} == {*TEXTS}
    await stream.forget_all()
    assert vectors.store == {}


async def test_a_vector_store_is_searched_page_by_page_and_not_by_fields() -> None:
    store = WithVectorStore(InMemoryStore(), lambda _: InMemoryVectorStore(ByTopic()))
    await stream_of(store)
    namespace = next(namespace for namespace in await store.alist_namespaces() if texts_of(namespace))
    whole = [item.key for item in await store.asearch(namespace, query="honey", limit=3)]
    assert [item.key for item in await store.asearch(namespace, query="honey", limit=1, offset=1)] == whole[1:2]
    assert await store.asearch(namespace, query="honey", limit=3, offset=3) == []
    with pytest.raises(Misuse, match="filter"):
        await store.asearch(namespace, query="honey", filter={"text": TEXTS[0]})


async def test_a_vector_store_is_opened_once_for_each_owner_by_their_name() -> None:
    opened = list[str]()

    def vector_store_of(owner: str) -> InMemoryVectorStore:
        opened.append(owner)
        return InMemoryVectorStore(ByTopic())

    store = WithVectorStore(InMemoryStore(), vector_store_of)
    for _ in range(2):
        await found(await stream_of(store, "ada.of/the caf\u00e9"), "honey")
        await found(await stream_of(store, "bob"), "honey")
    assert opened == ["ada.of/the caf\u00e9", "bob"]


async def test_facts_that_hold_come_whatever_the_store_finds(searching: BaseStore) -> None:
    stream = await stream_of(searching)
    await stream.add([new_memory("Ada is her name.", created=5.0, kind="fact", topic="name")])
    assert set(await found(stream, "honey", facts=1)) == {TEXTS[0], "Ada is her name."}


async def test_a_store_without_an_index_is_refused_and_no_text_asks_nothing() -> None:
    stream = await stream_of(InMemoryStore())
    with pytest.raises(Misuse, match="index"):
        await found(stream, "honey")
    with pytest.raises(Misuse, match="vector"):
        await stream.retrieve([1.0], k=1, now=9.0, ranking=RANKING)
    assert await found(stream, " ") == [TEXTS[2]]


async def test_only_this_ranking_asks_the_index_and_only_texts_are_in_it() -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return by_topic(texts)

    stream = await stream_of(indexed_store(embed))
    await stream.retrieve("honey", k=1, now=9.0)
    assert sorted(embedded) == sorted(TEXTS)
    await found(stream, "honey")
    assert embedded[len(TEXTS) :] == ["honey"]


async def test_an_agent_answers_from_what_its_store_finds(searching: BaseStore) -> None:
    await stream_of(searching, owner_of("default"))
    model = FakeChatModel(reply=lambda request: {"facts": []} if request.schema else "From her own bees.")
    settings = MemoryContext(model=model, embeddings="lexical", ranking="store", retrieved=1, fact_tokens=0)
    inputs: Any = {"messages": [("user", "Where does the honey come from?")]}
    result = await builder.compile(store=searching).ainvoke(inputs, context=settings)
    assert [memory["text"] for memory in result["memories"]] == [TEXTS[0]]


async def test_equal_texts_are_added_at_once_and_each_is_found() -> None:
    stream = await MemoryStream.open(indexed_store(), "ada", "lexical")
    repeated = [new_memory(TEXTS[0], created=float(number), key=str(number)) for number in range(3)]
    await stream.add([*repeated, new_memory(TEXTS[1], created=3.0)])
    honey = await stream.retrieve("honey", k=3, now=9.0, ranking=RANKING)
    assert {scored.memory["id"] for scored in honey} == {memory["id"] for memory in repeated}


async def test_equal_texts_of_which_some_cannot_be_written_are_no_memories() -> None:
    left = 1

    def embed(texts: Sequence[str]) -> list[list[float]]:
        nonlocal left
        left -= 1
        if left < 0:
            raise ConnectionError("gone")
        return by_topic(texts)

    stream = await MemoryStream.open(indexed_store(embed), "ada", "lexical")
    repeated = [new_memory(TEXTS[0], created=float(number), key=str(number)) for number in range(2)]
    with pytest.raises(ConnectionError):
        await stream.add(repeated)
    assert await stream.count() == 0
    left = 2
    assert len((await stream.add(repeated)).added) == 2


class TooMany(InMemoryVectorStore):
    """A vector store that finds everything a thousand times, and texts of others."""

    async def asimilarity_search(self, query: str, k: int = 4, **more: Any) -> list[Document]:
        own = await super().asimilarity_search(query, k)
        return [Document("Bob has a secret.", id="b" * 32), Document("Bob's.", id=own[-1].id), *own * 30_000]


async def test_a_vector_store_shows_nothing_but_ones_own_and_no_more_than_is_looked_for() -> None:
    stream = await stream_of(WithVectorStore(InMemoryStore(), lambda _: TooMany(ByTopic())))
    began = time.monotonic()
    scored = await stream.retrieve("honey", k=3, now=9.0, ranking=RANKING)
    assert sorted(each.memory["text"] for each in scored) == sorted(TEXTS)
    assert time.monotonic() - began < 0.5
