"""The watch itself: it sees what holds an event loop, and names it."""

import asyncio
import time
from collections.abc import Callable

import pytest

from reflective_agents.telemetry.loop_guard import LONGEST, Held, LoopGuard

pytestmark = pytest.mark.hostile


def burn() -> None:
    end = time.thread_time() + 2 * LONGEST
    while time.thread_time() < end:
        pass


def doze() -> None:
    time.sleep(2 * LONGEST)


@pytest.mark.matrix
@pytest.mark.parametrize("hold", [burn, doze])
def test_a_loop_that_is_held_is_seen(hold: Callable[[], None]) -> None:
    async def run(act: Callable[[], None]) -> list[Held]:
        held: list[Held] = []
        async with LoopGuard(held.append, every=0.005):
            await asyncio.sleep(0.05)
            act()
            await asyncio.sleep(0.05)
        return held

    (held,) = asyncio.run(run(hold))
    assert LONGEST < held.seconds < 10 * LONGEST
    assert (
        f"hostile/test_watch.py:{hold.__code__.co_firstlineno + (2 if hold is burn else 1)} {hold.__name__}"
        in held.stack
    )
    assert asyncio.run(run(lambda: None)) == []


def test_a_loop_that_is_closed_meanwhile_ends_the_watch() -> None:
    guard = LoopGuard(lambda _: None, every=0.005)
    asyncio.run(guard.__aenter__())
    guard._watch.join(5)
    assert not guard._watch.is_alive()
