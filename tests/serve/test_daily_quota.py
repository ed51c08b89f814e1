"""What a user may spend in a day: held before each call, settled after it, never exceeded."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from reflective_agents.models.account import charge_to
from reflective_agents.models.meter import Meter
from reflective_agents.nodes.users import ANYBODY
from reflective_agents.serve import daily_quota
from reflective_agents.serve.daily_quota import DailyQuota, MemoryLedger, Spent
from reflective_agents.serve.policy import Policy
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, UnknownPrice
from reflective_agents.state.limits import NANO
from reflective_agents.state.run import NOTHING_SPENT


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryLedger]:
    monkeypatch.setattr(daily_quota, "authenticated_user", lambda: None)
    ledger = MemoryLedger()
    yield ledger
    charge_to(None)


async def spent(ledger: MemoryLedger) -> Spent:
    return await ledger.spent(ANYBODY, daily_quota._today())


def meter(**settings: Any) -> Meter:
    return Meter(Context(model="offline", **settings), NOTHING_SPENT)


async def call(meter: Meter, held: int = 10, used: int = 4) -> None:
    async with meter.reserve(held, 5) as reservation:
        await asyncio.sleep(0)
        reservation.settle(used, 0, 2)


async def test_a_call_costs_what_it_was(ledger: MemoryLedger) -> None:
    charge_to(DailyQuota({"max_model_calls": 10}, ledger))
    await call(meter())
    assert await spent(ledger) == Spent(1, 4, 2)


async def test_a_call_is_held_while_it_is_under_way_and_kept_if_it_is_cancelled(ledger: MemoryLedger) -> None:
    charge_to(DailyQuota({"max_model_calls": 10}, ledger))

    async def never_ends() -> None:
        async with meter().reserve(10, 5):
            await asyncio.Event().wait()

    task = asyncio.create_task(never_ends())
    await asyncio.sleep(0.01)
    assert await spent(ledger) == Spent(1, 10, 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await spent(ledger) == Spent(1, 10, 5)


async def test_a_call_that_the_run_may_not_make_costs_nothing(ledger: MemoryLedger) -> None:
    charge_to(DailyQuota({"max_model_calls": 10}, ledger))
    with pytest.raises(LimitReached, match="max_total_tokens=5 "):
        await call(meter(max_total_tokens=5))
    assert await spent(ledger) == Spent()


@pytest.mark.parametrize(
    ("most", "done", "limit"),
    [
        ({"max_model_calls": 7}, 7, "max_model_calls_a_day"),
        ({"max_total_tokens": 34}, 7, "max_total_tokens_a_day"),
        ({"max_cost": 17 / NANO}, 7, "max_cost_a_day"),
    ],
)
async def test_many_runs_together_do_not_exceed_it(
    ledger: MemoryLedger, most: dict[str, float], done: int, limit: str
) -> None:
    account = DailyQuota(most, ledger)
    charge_to(account)
    for _ in range(done):
        await call(meter())
    results = await asyncio.gather(*(call(meter()) for _ in range(20)), return_exceptions=True)
    reached = [result for result in results if isinstance(result, LimitReached)]
    assert len(reached) == 20
    assert reached[0].limit["name"] == limit
    assert (await spent(ledger)).within(account.most)


async def test_fifty_at_once_get_what_is_left(ledger: MemoryLedger) -> None:
    charge_to(DailyQuota({"max_model_calls": 30}, ledger))
    results = await asyncio.gather(*(call(meter()) for _ in range(50)), return_exceptions=True)
    assert sum(result is None for result in results) == 30


async def test_a_call_of_unknown_price_is_refused_under_a_limit_of_money(ledger: MemoryLedger) -> None:
    charge_to(DailyQuota({"max_cost": 1}, ledger))
    with pytest.raises(UnknownPrice, match="max_cost of a day"):
        async with meter().reserve(10, None):
            pass
    assert await spent(ledger) == Spent()
    charge_to(DailyQuota({"max_model_calls": 1}, ledger))
    async with meter().reserve(10, None) as reservation:
        reservation.settle(4, 0)
    assert await spent(ledger) == Spent(1, 4, 0)


async def test_who_has_spent_all_is_told_so_before_a_run_begins(ledger: MemoryLedger) -> None:
    account = DailyQuota({"max_model_calls": 1}, ledger)
    charge_to(account)
    assert await account.used_up(ANYBODY) is None
    await call(meter())
    limit = await account.used_up(ANYBODY)
    assert limit is not None
    assert (limit["name"], limit["most"], limit["spent"]) == ("max_model_calls_a_day", 1, 1)
    assert await account.used_up("another") is None


def test_a_day_is_part_of_the_policy() -> None:
    assert Policy().daily_quota() is None
    account = Policy(day={"max_cost": 2}).daily_quota()
    assert account is not None
    assert account.most.nano == 2 * NANO
