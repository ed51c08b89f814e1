"""What is kept, in a few plain facts: noted when the data is made, and compared with what a later version reads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from reflective_agents.cli.database import open_store
from reflective_agents.cli.threads import Saver, config_of, load, status
from reflective_agents.memory.scoring import PAPER
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.remembering.experience import experience_of
from reflective_agents.nodes.remembering.remember import owner_of

NOW = 1_800_000_000.0
"""When the memories are asked, in seconds since 1970: after all of them were made."""
QUERIES = ("Where does my sister Ada live?", "What do I like to eat?", "When does the train leave?")


class Thread(TypedDict):
    """A thread as it stands."""

    strategy: str
    status: str
    question: str
    answer: str | None
    reason: str | None
    checkpoints: int
    messages: int
    tree: int | None
    """Nodes of the search tree; None if the strategy has none."""
    calls: int


class Remembered(TypedDict):
    """The memories of one owner."""

    kinds: dict[str, int]
    archived: int
    queries: dict[str, list[str]]
    """The ids of the three memories that fit each question best, ranked as the first version ranked them."""


async def read_thread(saver: Saver, strategy: str, thread: str) -> Thread:
    """Read a thread."""
    graph = load(strategy, saver)
    state = await graph.aget_state(config_of(thread))
    values: dict[str, Any] = state.values
    outcome = values.get("outcome") or {}
    return {
        "strategy": values.get("strategy", strategy),
        "status": status(state),
        "question": [message.text for message in values["messages"] if message.type == "human"][-1],
        "answer": values.get("answer"),
        "reason": outcome.get("reason"),
        "checkpoints": len([1 async for _ in graph.aget_state_history(config_of(thread))]),
        "messages": len(values["messages"]),
        "tree": len(values["tree"]) if values.get("tree") is not None else None,
        "calls": (values.get("usage") or {}).get("model_calls", 0),
    }


def owner(name: str) -> str:
    """Whose memory a name means: `user:<name>` or `experience:<name>`."""
    kind, _, given = name.partition(":")
    return owner_of(given) if kind == "user" else experience_of(given)


async def read_memories(store: BaseStore, name: str) -> Remembered:
    """Read the memories of one owner. To ask them notes that they were asked: read a copy."""
    stream = await MemoryStream.open(store, owner(name), "lexical")
    memories = [one async for one in stream.everything()]
    kinds = [one["kind"] for one in memories]
    return {
        "kinds": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "archived": sum(one["archived"] for one in memories),
        "queries": {
            query: [found.memory["id"] for found in await stream.retrieve(query, k=3, now=NOW, ranking=PAPER)]
            for query in QUERIES
        },
    }


@asynccontextmanager
async def the_store() -> AsyncIterator[BaseStore]:
    """The store that the command opens."""
    async with open_store() as store:
        assert store is not None
        yield store
