"""A wall clock that jumps, as one that is set by hand or by NTP does: runs neither end nor hang because of it."""

import time
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from reflective_agents.graphs import chain_of_thought
from reflective_agents.graphs.memory import builder
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.testing.fake import FakeChatModel

pytestmark = pytest.mark.hostile

YEAR = timedelta(days=365).total_seconds()


@pytest.fixture(params=[lambda n: n, lambda n: -n, lambda n: n % 2], ids=["ahead", "back", "to and fro"])
def jumping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jump by a year whenever the time is asked for."""
    real, calls = time.time, count(1)
    monkeypatch.setattr(time, "time", lambda: real() + YEAR * request.param(next(calls)))


@pytest.mark.usefixtures("jumping")
async def test_a_jump_neither_ends_nor_freezes_a_run() -> None:
    def reply(_: Any) -> str:
        time.time()  # jumps in the midst of the run
        return "Thought.\nAnswer: 42"

    context = ChainOfThoughtContext(model=FakeChatModel(reply=reply), samples=5, max_seconds=30)
    out = await chain_of_thought.graph.ainvoke({"messages": [("user", "6 * 7?")]}, context=context)
    assert (out["answer"], "limit" in out["outcome"]) == ("42", False), out["outcome"]
    assert 0 <= out["usage"]["seconds"] < 30


@pytest.mark.usefixtures("jumping")
async def test_a_memory_is_written_and_read_across_a_jump() -> None:
    graph = builder.compile(store=InMemoryStore())
    for text in ("I live in Turin.", "Where do I live?"):
        context = MemoryContext(model="offline", embeddings="lexical", max_seconds=30)
        out = await graph.ainvoke({"messages": [("user", text)]}, context=context)
        assert out["outcome"]["status"] in ("solved", "answered"), out["outcome"]
    assert any("Turin" in memory["text"] for memory in out["memories"])
