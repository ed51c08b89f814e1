"""Signals end a run in one way: whenever they come, and however often."""

import asyncio
import os
import signal

import pytest

from reflective_agents.cli import signals
from reflective_agents.cli.signals import ENDINGS, run_until_signal


def send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ENDINGS)
def test_what_was_cancelled_may_clean_up_however_often_they_come(number: int) -> None:
    closed = False

    async def work() -> None:
        nonlocal closed
        try:
            send(number)
            await asyncio.sleep(60)
        finally:
            for _ in range(3):
                send(number)
                await asyncio.sleep(0)
            closed = True

    with pytest.raises(KeyboardInterrupt):
        run_until_signal(work)
    assert closed
    assert signal.getsignal(number) == signal.SIG_IGN


def test_what_does_not_end_is_cancelled_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "PATIENCE", 0.05)
    cancelled = 0

    async def stubborn() -> None:
        nonlocal cancelled
        while cancelled < 2:
            send()
            try:
                await asyncio.sleep(0.06)
            except asyncio.CancelledError:
                cancelled += 1

    with pytest.raises(KeyboardInterrupt):
        run_until_signal(stubborn)
    assert cancelled == 2


def test_one_that_comes_before_the_loop_lets_nothing_begin() -> None:
    class Early(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            send()
            return super().new_event_loop()

    policy = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(Early())
    begun = False

    async def work() -> None:
        nonlocal begun
        begun = True

    try:
        with pytest.raises(KeyboardInterrupt):
            run_until_signal(work)
    finally:
        asyncio.set_event_loop_policy(policy)
    assert not begun


def test_one_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def work() -> str:
        send(signal.SIGHUP)
        return "done"

    before = signal.getsignal(signal.SIGINT)
    assert run_until_signal(work) == "done"
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) == before
