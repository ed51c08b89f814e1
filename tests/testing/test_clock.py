"""The clock that jumps."""

import asyncio
import time

import pytest

from reflective_agents.testing.clock import virtually


def test_an_hour_passes_at_once_and_things_happen_in_their_order() -> None:
    happened: list[tuple[str, float]] = []

    async def note(name: str, *seconds: float) -> None:
        for pause in seconds:
            await asyncio.sleep(pause)
            happened.append((name, asyncio.get_running_loop().time()))

    async def both() -> str:
        await asyncio.gather(note("slow", 3600), note("quick", 1, 2, 3))
        return "done"

    began = time.monotonic()
    result, seconds = virtually(both())
    assert result == "done"
    assert seconds == pytest.approx(3600)
    assert time.monotonic() - began < 60
    assert [name for name, _ in happened] == ["quick", "quick", "quick", "slow"]
    assert [at for _, at in happened] == pytest.approx([1, 3, 6, 3600])


def test_work_in_threads_is_waited_for_and_takes_no_time() -> None:
    def slowly() -> str:
        time.sleep(0.01)
        return "worked"

    async def work() -> str:
        async with asyncio.timeout(5):
            return await asyncio.to_thread(slowly)

    assert virtually(work()) == ("worked", 0)


def test_a_timeout_comes_when_its_time_has_come() -> None:
    async def wait() -> None:
        async with asyncio.timeout(5):
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        virtually(wait())
