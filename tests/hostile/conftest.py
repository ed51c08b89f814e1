"""Nothing of a stranger's holds the event loop: every test of this folder that runs on one is watched."""

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reflective_agents.graphs.chain_of_thought import graph as chain_of_thought
from reflective_agents.graphs.reflection import graph as reflection
from reflective_agents.telemetry.loop_guard import LONGEST, Held, LoopGuard

BEAT = 0.005
HELD = "seconds for which the event loop was held"


@pytest.fixture(scope="session")
def used_before() -> None:
    """Let runs end: what the first ones of a process load is not a stranger's doing."""
    inputs: Any = {"messages": [("user", "Why?")]}
    for graph, settings in ((chain_of_thought, {"samples": 2}), (reflection, {"max_rounds": 1})):
        context: Any = {"model": "offline", "structured": "text", **settings}
        asyncio.run(graph.ainvoke(inputs, context=context))


@pytest.fixture(autouse=True)
async def watch(request: pytest.FixtureRequest, used_before: None) -> AsyncIterator[None]:
    """Fail a test during which the event loop stood still, as servers report it."""
    if not inspect.iscoroutinefunction(getattr(request, "function", None)):
        yield
        return
    # What other tests have left is no stranger's: looking through it for garbage holds the loop as well, and so does a
    # collection that is due for what they have made.
    gc.freeze()
    gc.collect()
    held: list[Held] = []
    async with LoopGuard(held.append, longest=LONGEST / 4, every=BEAT):
        yield
        await asyncio.sleep(2 * BEAT)
    gc.unfreeze()
    longest = max((each.seconds for each in held), default=0.0)
    request.node.user_properties.append((HELD, longest))
    assert [each for each in held if each.seconds > LONGEST] == []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how long the event loop was held at most over all cases, for docs/security.md."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    cases = {
        (seconds, report.nodeid)
        for report in reports
        for name, seconds in getattr(report, "user_properties", ())
        if name == HELD
    }
    if cases:
        seconds, case = max(cases)
        terminalreporter.write_line(f"{HELD} at most, over {len(cases)} cases: {seconds:.3f} ({case})")
