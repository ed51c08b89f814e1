"""Nothing of a stranger's holds the event loop: every test of this folder that runs on one is watched."""

import asyncio
import gc
import inspect
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.graphs.chain_of_thought import graph as chain_of_thought
from reflective_agents.graphs.reflection import graph as reflection

LONGEST = 0.1
"""Seconds for which the event loop may stand still."""
BEAT = 0.005
WAITED = Path("/proc/thread-self/schedstat")
"""Where Linux counts the nanoseconds for which a thread was ready and other programs ran."""


@pytest.fixture(scope="session")
def used_before() -> None:
    """Let runs end: what the first ones of a process load is not a stranger's doing."""
    asked: Any = {"messages": [("user", "Why?")]}
    for graph, settings in ((chain_of_thought, {"samples": 2}), (reflection, {"max_rounds": 1})):
        context: Any = {"model": "offline", "structured": "text", **settings}
        asyncio.run(graph.ainvoke(asked, context=context))


@pytest.fixture(autouse=True)
async def watch(request: pytest.FixtureRequest, used_before: None) -> AsyncIterator[None]:
    """Fail a test during which the event loop stood still, by the longest gap between two beats on it."""
    if not inspect.iscoroutinefunction(getattr(request, "function", None)):
        yield
        return
    gc.freeze()  # what other tests have left is no stranger's: looking through it for garbage holds the loop as well
    async with gaps_between_beats() as gaps:
        yield
    gc.unfreeze()
    assert max(gaps) <= LONGEST, f"the event loop stood still for {max(gaps):.3f} seconds"


@asynccontextmanager
async def gaps_between_beats() -> AsyncIterator[list[float]]:
    """Yield the list of the seconds for which the event loop stands still meanwhile."""
    gaps: list[float] = []
    beats = asyncio.create_task(_beat(gaps))
    yield gaps
    await asyncio.sleep(2 * BEAT)
    beats.cancel()


async def _beat(gaps: list[float]) -> None:
    while True:
        begun, waited = time.monotonic(), _waited()
        await asyncio.sleep(BEAT)
        gaps.append(time.monotonic() - begun - BEAT - (_waited() - waited))


def _waited() -> float:
    """Return the seconds for which this thread was ready to run while others did: those of a busy machine."""
    return int(WAITED.read_text().split()[1]) / 1e9 if WAITED.exists() else 0.0
