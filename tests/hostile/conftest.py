"""Nothing of a stranger's holds the event loop: every test of this folder that runs on one is watched."""

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reflective_agents.graphs.chain_of_thought import graph as chain_of_thought
from reflective_agents.graphs.reflection import graph as reflection
from reflective_agents.telemetry.loop_guard import Held, LoopGuard

BEAT = 0.005


@pytest.fixture(scope="session")
def used_before() -> None:
    """Let runs end: what the first ones of a process load is not a stranger's doing."""
    asked: Any = {"messages": [("user", "Why?")]}
    for graph, settings in ((chain_of_thought, {"samples": 2}), (reflection, {"max_rounds": 1})):
        context: Any = {"model": "offline", "structured": "text", **settings}
        asyncio.run(graph.ainvoke(asked, context=context))


@pytest.fixture(autouse=True)
async def watch(request: pytest.FixtureRequest, used_before: None) -> AsyncIterator[None]:
    """Fail a test during which the event loop stood still, as servers report it."""
    if not inspect.iscoroutinefunction(getattr(request, "function", None)):
        yield
        return
    gc.freeze()  # what other tests have left is no stranger's: looking through it for garbage holds the loop as well
    held: list[Held] = []
    async with LoopGuard(held.append, every=BEAT):
        yield
        await asyncio.sleep(2 * BEAT)
    gc.unfreeze()
    assert held == []
