"""Reservations: what is spent, what is refused, who waits for whom."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.models.meter import Meter
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.limits import NANO
from reflective_agents.state.run import NOTHING_SPENT


def meter(calls: int = 100, tokens: int = 1000, seconds: float = 60, spent_calls: int = 0) -> Meter:
    context = Context(max_model_calls=calls, max_total_tokens=tokens, max_seconds=seconds)
    return Meter(context, {**NOTHING_SPENT, "model_calls": spent_calls})


async def test_a_settled_call_costs_what_it_cost() -> None:
    limits = meter()
    async with limits.reserve(500) as reservation:
        reservation.settle(30, 12)
    usage = limits.usage
    assert (usage["model_calls"], usage["input_tokens"], usage["output_tokens"]) == (1, 30, 12)
    assert usage["total_tokens"] == 42


async def test_a_call_that_is_never_settled_keeps_its_reservation() -> None:
    limits = meter()
    with pytest.raises(ConnectionError):
        async with limits.reserve(500):
            raise ConnectionError
    assert (limits.usage["model_calls"], limits.usage["total_tokens"]) == (1, 500)


async def test_the_refusal_quotes_the_numbers() -> None:
    limits = meter(tokens=100)
    async with limits.reserve(90) as reservation:
        reservation.settle(90, 0)
    with pytest.raises(LimitReached) as refused:
        async with limits.reserve(11):
            pass
    assert refused.value.limit == {"name": "max_total_tokens", "most": 100, "spent": 90, "needed": 11}
    with pytest.raises(LimitReached) as refused:
        meter(calls=3, spent_calls=3).check()
    assert refused.value.limit == {"name": "max_model_calls", "most": 3, "spent": 3}


def test_an_answer_has_the_room_that_is_left_if_that_is_enough() -> None:
    limits = meter(tokens=1000)
    assert limits.answer_budget(100, 800) == 800
    assert limits.answer_budget(300, 800) == 800, "such a call is refused"
    limits.least_answer_tokens = 150
    assert [limits.answer_budget(prompt, 800) for prompt in (100, 300, 850, 900, 2000)] == [800, 700, 150, 150, 150]
    assert limits.answer_budget(100, 800, n=3) == 300
    assert limits.answer_budget(100, 120) == 120


async def test_an_answer_leaves_the_room_of_calls_in_flight() -> None:
    limits = meter(tokens=1000)
    limits.least_answer_tokens = 50
    async with limits.reserve(500):
        assert limits.answer_budget(100, 800) == 400


async def test_a_call_waits_for_those_in_flight_and_goes_when_they_cost_less() -> None:
    limits, order = meter(tokens=100), []

    async def call(name: str, seconds: float) -> None:
        async with limits.reserve(80) as reservation:
            order.append(f"{name} begins")
            await asyncio.sleep(seconds)
            order.append(f"{name} ends")
            reservation.settle(5, 5)

    await asyncio.gather(call("a", 0.01), call("b", 0))
    assert order == ["a begins", "a ends", "b begins", "b ends"]


async def test_a_call_that_waits_in_vain_is_refused() -> None:
    limits = meter(tokens=100)

    async def call() -> None:
        async with limits.reserve(80):
            await asyncio.sleep(0)

    results = await asyncio.gather(call(), call(), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), LimitReached]


async def test_time_that_was_spent_before_counts() -> None:
    limits = Meter(Context(max_seconds=10), {**NOTHING_SPENT, "seconds": 10.5})
    assert limits.seconds_left == 0
    with pytest.raises(LimitReached, match="max_seconds"):
        limits.check()


async def test_a_call_that_costs_more_than_is_left_is_refused_and_one_in_flight_is_waited_for() -> None:
    limits, order = Meter(Context(max_cost=0.001), NOTHING_SPENT), []

    async def call(name: str, nano: int) -> None:
        async with limits.reserve(1, nano) as reservation:
            order.append(name)
            await asyncio.sleep(0)
            reservation.settle(1, 0, 300_000)

    with pytest.raises(LimitReached) as refused:
        await call("dear", 1_001_000)
    assert refused.value.limit == {"name": "max_cost", "most": 0.001, "spent": 0, "needed": 0.001001}
    await asyncio.gather(call("a", 600_000), call("b", 600_000))
    assert order == ["a", "b"]
    assert (limits.usage["cost"], limits.nano_left) == (0.0006, 400_000)


async def test_a_call_of_unknown_price_is_counted_and_costs_nothing() -> None:
    limits = meter()
    async with limits.reserve(5, None) as reservation:
        reservation.settle(3, 1)
    assert (limits.usage["cost"], limits.usage["unpriced_calls"]) == (0, 1)


CALLS = st.lists(
    st.tuples(st.integers(1, 60), st.floats(0, 1), st.sampled_from(["settle", "fail", "cancel"])), max_size=50
)


@given(CALLS, st.integers(1, 40), st.integers(1, 400), st.integers(1, 4000))
def test_no_mixture_of_ends_exceeds_a_limit(
    calls: list[tuple[int, float, str]], most: int, tokens: int, nano: int
) -> None:
    context = Context(max_model_calls=most, max_total_tokens=tokens, max_seconds=60, max_cost=nano / NANO)
    limits = Meter(context, NOTHING_SPENT)

    async def call(reserved: int, share: float, end: str) -> None:
        async with limits.reserve(reserved, 7 * reserved) as reservation:
            await asyncio.sleep(0)
            assert limits.usage["model_calls"] <= most
            if end == "settle":
                reservation.settle(int(reserved * share), 0, int(7 * reserved * share))
            elif end == "fail":
                raise ConnectionError
            else:
                raise asyncio.CancelledError

    async def all_at_once() -> None:
        await asyncio.gather(*(call(*each) for each in calls), return_exceptions=True)

    asyncio.run(all_at_once())
    assert limits.usage["model_calls"] <= most
    assert limits.usage["total_tokens"] <= tokens
    assert round(limits.usage["cost"] * NANO) <= nano
