"""Sampling several replies to one prompt: in one request where the provider takes `n`, else in one each, at once."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from math import comb
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.calls import request, seeded
from reflective_agents.models.capabilities import ChatModel, takes_n, takes_seed
from reflective_agents.nodes.asking.chat import ATTEMPTS
from reflective_agents.nodes.memo import at_once, each_to_its_end
from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Context
from reflective_agents.state.errors import InvalidOutput, LimitReached, ModelFailed
from reflective_agents.state.json_types import JsonObject

AGAIN = 3_000
"""How far the seed of a sample that is asked for again is from its first: with that it would be the same."""
Replies = Mapping[int, AIMessage]
"""Replies by the index of each among the samples."""


def calls_for(model: ChatModel, count: int) -> int:
    """Return how many calls so many samples take."""
    return 1 if takes_n(model) else count


def seed_of(step: Step[Context], model: ChatModel) -> JsonObject:
    """Return the seed of a run as an option of its requests; nothing if there is none, or the model takes none."""
    seed = step.context.seed
    return {"seed": seed} if seed is not None and takes_seed(model) else {}


async def sample(
    step: Step[Context], model: ChatModel, prompt: Sequence[BaseMessage], count: int, **options: Any
) -> list[AIMessage]:
    """Sample replies that are of use only together: if one request fails, all do.

    Raises:
        LimitReached, ModelFailed: as `models.calls.request`.
    """
    sizes = [count] if takes_n(model) else [1] * count
    options = seed_of(step, model) | options
    requests = [
        request(model, prompt, step.meter, n=size, **seeded(options, index)) for index, size in enumerate(sizes)
    ]
    batches = await at_once(requests)
    return list(chain.from_iterable(batches))


async def sample_some(
    step: Step[Context], model: ChatModel, prompt: Sequence[BaseMessage], count: int, **options: Any
) -> list[AIMessage]:
    """Sample replies at once, each of which is of use alone; fewer, if some failed.

    Raises:
        LimitReached, ModelFailed: if there is none.
    """
    size = count if takes_n(model) else 1
    options = seed_of(step, model) | options
    sampled: dict[int, list[AIMessage]] = {}

    async def keep(index: int) -> None:
        sampled[index] = await request(model, prompt, step.meter, n=size, **seeded(options, index))

    try:
        await each_to_its_end([keep(index) for index in range(0, count, size)])
    except (LimitReached, ModelFailed):
        if not sampled:
            raise
    replies: list[AIMessage] = []
    for index in sorted(sampled):
        replies += sampled[index]
    return replies


async def sample_each(
    step: Step[Context],
    model: ChatModel,
    prompt: Sequence[BaseMessage],
    indexes: range,
    follow: Callable[[Replies], Awaitable[None]],
    *,
    first: int = 0,
    usable: Callable[[AIMessage], bool] = lambda reply: True,
    **options: Any,
) -> None:
    """Sample a reply for each index, and hand them on as they come. What a provider leaves out, or is not usable, is
    sampled again in requests of their own.

    Args:
        step, model, prompt: Who asks whom what; the setting `seed` goes with the requests.
        indexes: The numbers of the samples.
        follow: Takes replies as they come.
        first: What an index is counted from in the seed: samples that are asked for one by one would all be alike else.
        usable: Whether a reply can be used; one that cannot counts as a parse failure.
        options: Further options of the requests.

    Raises:
        LimitReached, ModelFailed: if some are not to be had, when all others have come to their end.
    """
    seed = seed_of(step, model)

    async def ask(start: int, size: int, attempt: int = 1) -> None:
        number = first + start + (attempt - 1) * AGAIN
        replies = await request(model, prompt, step.meter, n=size, **seeded(seed, number), **options)
        accepted = {start + i: reply for i, reply in enumerate(replies[:size]) if usable(reply)}
        step.meter.count(parse_failures=min(len(replies), size) - len(accepted))
        work = [follow(accepted)] if accepted else []
        if attempt < ATTEMPTS:
            missing = [index for index in range(start, start + size) if index not in accepted]
            work += [ask(index, 1, attempt + 1) for index in missing]
        await each_to_its_end(work)

    size = len(indexes) if takes_n(model) else 1
    await each_to_its_end([ask(start, size) for start in indexes[::size]])


class Samples(NamedTuple):
    """Replies in the order of their indexes; and what has stopped some of them, if something has."""

    replies: list[AIMessage]
    stop: LimitReached | ModelFailed | None


async def run_until(done: asyncio.Event, work: Awaitable[None]) -> None:
    """Await some work, and cancel what is left of it once it is done with."""
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(done.wait())
    try:
        await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        working.cancel()
        waiting.cancel()
        # Cancelled tasks have to end here, or a request could still be settled after the node has.
        await asyncio.wait([working, waiting])


async def sample_texts(
    step: Step[Context],
    model: ChatModel,
    prompt: Sequence[BaseMessage],
    count: int,
    *,
    batch: int | None = None,
    enough: Callable[[Sequence[AIMessage]], bool] | None = None,
    **options: Any,
) -> Samples:
    """Sample replies that hold text; fewer, if some failed or if there are enough.

    Args:
        step, model, prompt: Who asks whom what.
        count: How many at most.
        batch: How many are asked for at once. Default: all.
        enough: Whether no more are needed; samples in flight are then cancelled. Default: never.
        options: Further options of the requests.

    Raises:
        LimitReached, ModelFailed: if there is none.
    """
    sampled: dict[int, AIMessage] = {}
    stopped: LimitReached | ModelFailed | None = None
    done = asyncio.Event()

    async def keep(replies: Replies) -> None:
        sampled.update(replies)
        if enough and enough([sampled[index] for index in sorted(sampled)]):
            done.set()

    def has_text(reply: AIMessage) -> bool:
        return bool(reply.text.strip())

    try:
        for start in range(0, count, batch or count):
            indexes = range(start, min(start + (batch or count), count))
            await run_until(done, sample_each(step, model, prompt, indexes, keep, usable=has_text, **options))
            if done.is_set():
                break
    except (LimitReached, ModelFailed) as stop:
        if not sampled:
            raise
        stopped = stop
    if not sampled:
        raise InvalidOutput(f"no text in {ATTEMPTS} attempts: the model called a tool instead")
    return Samples([sampled[index] for index in sorted(sampled)], stopped)


def majority(most: int, second: int) -> float:
    """Calculate the chance that the answer that leads is the more frequent one of the model's two most frequent ones.

    The Beta criterion of Adaptive-Consistency (Aggarwal et al. 2023, arXiv 2305.11860, section 3): the share of the
    leader among the two is distributed as Beta(most + 1, second + 1), and this is the chance that it exceeds 1/2.

    Args:
        most: Votes for the answer that leads.
        second: Votes for the one behind it.
    """
    # With whole parameters the integral is a sum of binomial coefficients.
    votes = most + second + 1
    ways = sum(comb(votes, count) for count in range(most + 1))
    return float(ways / 2**votes)
