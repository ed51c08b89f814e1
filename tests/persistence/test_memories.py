"""Long-term memory in SQLite and Postgres: restarts, several processes at once, kill -9, and leaving nothing behind."""

import asyncio
import signal

import pytest

from reflective_agents.memory.layout import search
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.memory.transfer import export_jsonl
from reflective_agents.state.memories import new_memory
from tests.persistence.rememberers import OWN, OWNER, SHARED, live, observation, open_store
from tests.persistence.victim import start

NAMES = ("first", "second")


def keys(*names: str) -> set[str]:
    """Texts of all that these processes remember."""
    shared = {f"memory {number}" for number in range(SHARED)}
    own = {f"memory {name} {number}" for name in names for number in range(SHARED, SHARED + OWN)}
    return shared | own | {f"{name} thinks" for name in names}


@pytest.mark.thorough
async def test_two_processes_lose_nothing_of_one_memory(database: str) -> None:
    async with open_store(database) as store:
        watching = await MemoryStream.open(store, OWNER, "lexical")
        running = [start(live, name, database) for name in NAMES]
        while any(process.is_alive() for process in running):
            await watching.count()
            await asyncio.sleep(0.05)
        assert [process.exitcode for process in running] == [0, 0]
        async with open_store(database) as other:
            for stream in (watching, await MemoryStream.open(other, OWNER, "lexical")):
                memories = [memory async for memory in stream.everything()]
                assert {memory["text"] for memory in memories} == keys(*NAMES)
                assert len(memories) == SHARED + 2 * OWN + 2
                archived = {memory["text"] for memory in memories if memory["archived"]}
                assert archived == {f"memory {name} {SHARED}" for name in NAMES}
                assert max(memory["accessed"] for memory in memories) == 1000.0 + SHARED + OWN - 1
                assert (await stream.pending()).importance == 0
            again = [line async for line in export_jsonl(watching)]
            assert [line async for line in export_jsonl(stream)] == again


@pytest.mark.thorough
async def test_a_killed_process_loses_and_doubles_nothing(database: str) -> None:
    async with open_store(database):
        pass
    killed = start(live, "first", database, kill_at=7)
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL
    await live("first", database)
    async with open_store(database) as store:
        stream = await MemoryStream.open(store, OWNER, "lexical")
        texts = [memory["text"] async for memory in stream.everything()]
        assert len(texts) == len(set(texts)) == len(keys("first"))
        assert set(texts) == keys("first")
        stored = await search(store, ("memory",))
        assert len([item for item in stored if item.namespace[2] in ("text", "index")]) == 2 * len(texts)


@pytest.mark.matrix
async def test_a_memory_survives_a_restart_and_can_be_forgotten_whole(database: str) -> None:
    async with open_store(database) as store:
        stream = await MemoryStream.open(store, OWNER)
        await stream.add([new_memory("Bob bakes \N{BREAD} 'well'; -- \\ %", created=1.5, importance=7)])
        before = await stream.retrieve("Who bakes?", k=1, now=7200.0)
        await (await MemoryStream.open(store, f"{OWNER}.b")).add([observation("other", 1)])
    async with open_store(database) as store:
        stream = await MemoryStream.open(store, OWNER)
        (found,) = await stream.retrieve("Who bakes?", k=1, now=7200.0)
        assert found.memory == {**before[0].memory, "accessed": 7200.0}
        await stream.forget_all()
        left = await search(store, ("memory",))
        assert {item.namespace[1] for item in left} == {"anna%2Eof%2Ethe%2Ecaf%C3%A9%2Eb"}
