"""The watch itself: it sees what holds an event loop."""

import asyncio
import time
from collections.abc import Callable

import pytest

from tests.hostile.conftest import LONGEST, gaps_between_beats

pytestmark = pytest.mark.hostile


def burn() -> None:
    end = time.thread_time() + 2 * LONGEST
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("hold", [burn, lambda: time.sleep(2 * LONGEST)], ids=["works", "waits"])
def test_a_loop_that_is_held_is_seen(hold: Callable[[], None]) -> None:
    async def run(act: Callable[[], None]) -> float:
        async with gaps_between_beats() as gaps:
            await asyncio.sleep(0.05)
            act()
        return max(gaps)

    assert asyncio.run(run(hold)) > LONGEST
    assert asyncio.run(run(lambda: None)) <= LONGEST
