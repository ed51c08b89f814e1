"""Doing a thing once, and several things at once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from reflective_agents.nodes.memo import Memo, at_once, each_to_its_end, memo_of
from reflective_agents.state.errors import LimitReached, ModelFailed


class Work:
    """Something that takes a turn of the loop, or so many, and is counted."""

    def __init__(self, fails: int = 0, turns: int = 1) -> None:
        self.begun = self.done = self.cancelled = 0
        self.fails, self.turns = fails, turns

    async def __call__(self) -> str:
        self.begun += 1
        try:
            for _ in range(self.turns):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.begun <= self.fails:
            raise ModelFailed("broken")
        self.done += 1
        return f"result {self.begun}"


async def test_who_asks_at_once_or_later_gets_the_one_result() -> None:
    memo, work = Memo(), Work()
    first = await asyncio.gather(*(memo.once("key", work) for _ in range(5)))
    assert first == [("result 1", False), *[("result 1", True)] * 4]
    assert await memo.once("key", work) == ("result 1", True)
    assert await memo.once("other", work) == ("result 2", False)
    assert work.done == 2


async def test_an_empty_result_is_a_result() -> None:
    memo = Memo()

    async def nothing() -> None:
        return None

    assert await memo.once("key", nothing) == (None, False)
    assert await memo.once("key", nothing) == (None, True)


async def test_what_has_failed_is_tried_again_by_one_of_those_who_wait() -> None:
    memo, work = Memo(), Work(fails=1)
    results = await asyncio.gather(*(memo.once("key", work) for _ in range(4)), return_exceptions=True)
    assert isinstance(results[0], ModelFailed)
    assert results[1:] == [("result 2", False), ("result 2", True), ("result 2", True)]


async def test_who_waits_goes_on_when_the_one_who_works_is_cancelled() -> None:
    memo, work = Memo(), Work()
    tasks = [asyncio.create_task(memo.once("key", work)) for _ in range(2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1] == ("result 2", False)


def test_a_run_has_a_memo_of_its_own() -> None:
    assert memo_of("one run") is memo_of("one run")
    assert memo_of("one run") is not memo_of("another run")


async def test_results_come_in_the_order_of_what_was_asked_for() -> None:
    async def after(turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return turns

    assert await at_once([after(3), after(1), after(2)]) == [3, 1, 2]
    assert await at_once([]) == []


def limit(name: str) -> LimitReached:
    return LimitReached({"name": name, "most": 1, "spent": 1})


async def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("error", [KeyError("key"), limit("first")])
async def test_the_first_exception_goes_on_bare_when_the_others_have_been_cancelled(error: Exception) -> None:
    forever = [Work(turns=1000), Work(turns=1000)]
    before = asyncio.all_tasks()
    with pytest.raises(type(error)) as raised:
        await at_once([forever[0](), fail(error), forever[1]()])
    assert raised.value is error
    assert [(work.begun, work.done, work.cancelled) for work in forever] == [(1, 0, 1)] * 2
    assert asyncio.all_tasks() == before


async def test_cancelling_cancels_all_of_them() -> None:
    works = [Work() for _ in range(3)]
    task = asyncio.create_task(at_once([work() for work in works]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [work.cancelled for work in works] == [1, 1, 1]


@pytest.mark.parametrize("make", [limit, ModelFailed])
async def test_each_comes_to_its_end_before_a_limit_or_a_failing_model_is_told(
    make: Callable[[str], Exception],
) -> None:
    works = [Work(), Work()]

    async def run(work: Work) -> None:
        await work()

    both: list[Awaitable[None]] = [fail(make("first")), run(works[0]), fail(make("second")), run(works[1])]
    with pytest.raises((LimitReached, ModelFailed), match="first"):
        await each_to_its_end(both)
    assert [work.done for work in works] == [1, 1]


async def test_what_is_cancelled_before_it_began_is_not_reported_as_never_awaited() -> None:
    works = [Work(), Work()]

    async def run(work: Work) -> None:
        await work()

    async def both() -> None:
        await each_to_its_end([run(work) for work in works])

    task = asyncio.create_task(both())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [work.begun for work in works] == [0, 0]


async def test_any_other_exception_does_not_wait() -> None:
    work = Work(turns=1000)

    async def run() -> None:
        await work()

    with pytest.raises(KeyError):
        await each_to_its_end([run(), fail(KeyError("key"))])
    assert work.done == 0
