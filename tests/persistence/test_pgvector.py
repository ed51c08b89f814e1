"""A memory in Postgres whose texts pgvector finds, through LangGraph's own store."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import pytest_asyncio
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg.conninfo import make_conninfo

from reflective_agents.graphs.memory import builder
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.remembering.remember import owner_of
from reflective_agents.state.memories import new_memory
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.testing.fake import FakeChatModel
from tests.memory.test_store_search import RANKING, TEXTS, ByTopic, found, stream_of

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.pgvector,
    pytest.mark.thorough,
    pytest.mark.xdist_group("postgres"),
]


@pytest.fixture
def address(postgres_server: str) -> Iterator[str]:
    """Address of an empty schema that finds the types of pgvector."""
    schema = f"reflect_test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        yield make_conninfo(postgres_server, options=f"-c search_path={schema},public")
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


@pytest_asyncio.fixture
async def store(address: str) -> AsyncIterator[AsyncPostgresStore]:
    async with AsyncPostgresStore.from_conn_string(address, index={"dims": 4, "embed": ByTopic()}) as opened:
        await opened.setup()
        yield opened


@pytest.mark.parametrize(("query", "text"), [*zip(("honey", "tram", "jam"), TEXTS, strict=True)])
async def test_what_fits_by_pgvector_comes_first(store: AsyncPostgresStore, query: str, text: str) -> None:
    stream = await stream_of(store)
    await stream_of(store, "bob")
    assert await found(stream, query) == [text]


async def test_the_search_happens_in_postgres(store: AsyncPostgresStore, address: str) -> None:
    stream = await stream_of(store)
    assert await found(stream, "honey") == [TEXTS[0]]
    [orchard] = [memory["id"] async for memory in stream.everything() if memory["text"] == TEXTS[2]]
    honey = str(ByTopic().embed_query("honey"))
    with psycopg.connect(address, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM store_vectors").fetchone() == (len(TEXTS),)
        connection.execute("UPDATE store_vectors SET embedding = '[0, 0, 0, 1]' WHERE key <> %s", [orchard])
        connection.execute("UPDATE store_vectors SET embedding = %s WHERE key = %s", [honey, orchard])
    assert await found(stream, "honey") == [TEXTS[2]], "the vectors that Postgres holds decide"


async def test_edits_and_deletions_reach_the_index(store: AsyncPostgresStore, address: str) -> None:
    stream = await stream_of(store)
    [hive] = [memory["id"] async for memory in stream.everything() if memory["text"] == TEXTS[0]]
    await stream.edit(hive, "Ada has figs.")
    assert await found(stream, "honey") != ["Ada has figs."]
    await stream.delete(hive)
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT count(*) FROM store_vectors").fetchone() == (len(TEXTS) - 1,)


async def test_another_process_finds_what_was_added(store: AsyncPostgresStore, address: str) -> None:
    stream = await stream_of(store)
    async with AsyncPostgresStore.from_conn_string(address, index={"dims": 4, "embed": ByTopic()}) as other:
        theirs = await MemoryStream.open(other, "ada", "lexical")
        await theirs.add([new_memory("She sold honey.", created=8.0, importance=9)])
    best = await stream.retrieve("bees", k=2, now=9.0, ranking=RANKING)
    assert {scored.memory["text"] for scored in best} == {TEXTS[0], "She sold honey."}


async def test_an_agent_answers_from_what_postgres_finds(store: AsyncPostgresStore) -> None:
    await stream_of(store, owner_of("default"))
    model = FakeChatModel(reply=lambda request: {"facts": []} if request.schema else "From her own bees.")
    settings = MemoryContext(model=model, embeddings="lexical", ranking="store", retrieved=1, fact_tokens=0)
    question: Any = {"messages": [("user", "Where does the honey come from?")]}
    result = await builder.compile(store=store).ainvoke(question, context=settings)
    assert [memory["text"] for memory in result["memories"]] == [TEXTS[0]]
