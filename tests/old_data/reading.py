"""What the data holds, in a few plain facts: noted when it is made, and compared with what a later version reads."""

from typing import Any

from reflective_agents.cli.database import open_store
from reflective_agents.cli.threads import config_of, load, open_saver, recent, status
from reflective_agents.memory.rankings.paper import Paper
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.remembering.experience import experience_of
from reflective_agents.nodes.remembering.remember import owner_of

NOW = 1_800_000_000.0
"""When the memories are retrieved, in seconds since 1970: after all of them were made."""
OWNERS = {"ada": owner_of("ada"), "chess": experience_of("chess")}
QUERY = "Where does my sister Ada live?"


async def read_threads() -> dict[str, Any]:
    """Read all threads of the home."""
    threads: dict[str, Any] = {}
    async with open_saver() as saver:
        for name, strategy in await recent(saver):
            graph = load(strategy, saver)
            state = await graph.aget_state(config_of(name))
            threads[name] = {
                "strategy": strategy,
                "status": status(state),
                "question": state.values["messages"][0].text,
                "answer": state.values.get("answer"),
                "checkpoints": len([1 async for _ in graph.aget_state_history(config_of(name))]),
                "nodes": len(state.values.get("tree") or {}),
                "calls": state.values["usage"]["model_calls"],
            }
    return threads


async def read_memories() -> dict[str, Any]:
    """Read the memories of the home by their owners: their kinds, and the ids of those that fit a question best."""
    memories: dict[str, Any] = {}
    async with open_store() as store:
        assert store is not None
        for name, owner in OWNERS.items():
            stream = await MemoryStream.open(store, owner, "lexical")
            ranked = await stream.retrieve(QUERY, k=3, now=NOW, ranking=Paper())
            kinds = [memory["kind"] async for memory in stream.everything()]
            memories[name] = {"kinds": kinds, "best": [scored.memory["id"] for scored in ranked]}
    return memories
