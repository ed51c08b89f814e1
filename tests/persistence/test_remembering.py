"""kill -9 of a conversation between any two steps, and after any write: nothing is lost, nothing doubled."""

from typing import Any

import pytest

from reflective_agents.memory.layout import search
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.remembering.remember import owner_of
from tests.persistence.talkers import FIRST, SECOND, Death, open_graph, settings, talk_until, thread

STEPS, WRITES = range(-1, 8), range(1, 4)
DEATHS = {
    **{f"after step {step}": Death(step=step) for step in STEPS},
    **{f"after write {write}": Death(write=write) for write in WRITES},
}


async def remembered(store: Any, user: str) -> list[tuple[Any, ...]]:
    """All that is remembered of a user, but for what differs from run to run: times, ids, and which of several memories
    that fit alike an insight rests on."""
    stream = await MemoryStream.open(store, owner_of(user), "lexical")
    memories = [memory async for memory in stream.everything()]
    texts = {memory["id"]: memory["text"] for memory in memories}
    stored = [item for item in await search(store, ("memory",)) if item.key in texts]
    assert len([item for item in stored if item.namespace[2] == "text"]) == len(memories)
    assert (await stream.pending()).importance == 0
    assert {below for memory in memories for below in memory["evidence"]} <= texts.keys()
    return sorted((memory["text"], memory["kind"], len(memory["evidence"])) for memory in memories)


@pytest.mark.thorough
async def test_nothing_is_lost_or_doubled_whenever_a_conversation_is_killed(database: str) -> None:
    """Each database meets every other death."""
    deaths = dict([*DEATHS.items()][database.endswith(".sqlite") :: 2])
    async with open_graph(database) as (graph, store):
        for user in ("undisturbed", *deaths):
            await graph.ainvoke(
                {"messages": [("user", FIRST)]}, thread(f"first {user}"), context=settings(user, reflect_at=1000)
            )
        out = await graph.ainvoke({"messages": [("user", SECOND)]}, thread("u"), context=settings("undisturbed"))
        assert (out["answer"], out["memories"][0]["cited"]) == ("In Turin.", True)
        expected = await remembered(store, "undisturbed")
        assert len(expected) == 2 + 1 + 2 + 5
    for user, death in deaths.items():
        talk_until(death, user, database)
    async with open_graph(database) as (graph, store):
        for user in deaths:
            resumed = await graph.ainvoke(None, thread(user), context=settings(user), durability="sync")
            assert (resumed["answer"], resumed["outcome"]) == (out["answer"], out["outcome"]), user
            assert await remembered(store, user) == expected, user
