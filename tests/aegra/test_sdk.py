"""LangGraph's own clients, and OpenAI's responses, on Aegra."""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError

from tests.aegra.process import KEYS, Server
from tests.serve import sdk

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    "work",
    [
        sdk.the_sdk_works,
        sdk.a_run_goes_on_without_an_input,
        sdk.a_remote_graph_has_a_state,
        sdk.aegra_knows_assistants_by_name,
        sdk.aegra_refuses_what_it_lacks,
    ],
)
async def test_it_works(servers: list[Server], work: Callable[[LangGraphClient], Awaitable[None]]) -> None:
    await work(servers[0].client())


@asynccontextmanager
async def responses(server: Server, user: str = "ann") -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(base_url=f"{server.address}/v1", api_key=KEYS[user], max_retries=0) as client:
        yield client.responses


async def test_a_response_is_its_users(servers: list[Server]) -> None:
    async def follow(user: str, server: Server) -> Any:
        async with responses(server, user) as own:
            earlier = previous[-1].id if previous else None
            return await own.create(model="chain_of_thought:offline", input="Why?", previous_response_id=earlier)

    previous: list[Any] = []
    previous.append(await follow("ann", servers[0]))
    following = [await follow("ann", server) for server in servers]
    assert len({response.id for response in (*previous, *following)}) == 3  # two go on from the same one
    with pytest.raises(openai.NotFoundError):
        await follow("bob", servers[0])
    key = previous[0].id
    async with responses(servers[1], "bob") as foreign:
        for attempt in (foreign.retrieve(key), foreign.delete(key), foreign.cancel(key), foreign.input_items.list(key)):
            with pytest.raises(openai.NotFoundError):
                await attempt
    async with responses(servers[1]) as own:
        found = await own.retrieve(key)
        assert (found.output, found.usage) == (previous[0].output, previous[0].usage)
        assert [item.content[0].text for item in (await own.input_items.list(key)).data] == ["Why?"]
        for response in (*previous, *following):
            assert await servers[0].client().threads.get(response.thread_id)
            await own.delete(response.id)
            with pytest.raises(openai.NotFoundError):
                await own.retrieve(response.id)
    with pytest.raises(NotFoundError):
        await servers[0].client().threads.get(previous[0].thread_id)


async def test_a_response_in_the_background_outlives_the_process_that_took_it(
    servers: list[Server], start: Callable[[], Server]
) -> None:
    settings = {"n": 2, "max_expansions": 4, "max_model_calls": 30, "search": "none"}
    question = {"model": "lats", "input": "A slow and unsolvable question", "extra_body": {"settings": settings}}
    async with responses(servers[0]) as own:
        stream = await own.create(**question, background=True, stream=True)
        seen = [await anext(aiter(stream)) for _ in range(3)]
    key = seen[0].response.id
    servers[0].end(signal.SIGKILL)
    servers[0] = start()
    async with responses(servers[1]) as own:
        rest = [event async for event in await own.retrieve(key, stream=True, starting_after=2)]
        assert [event.sequence_number for event in rest] == [*range(3, 3 + len(rest))]
        assert rest[-1].response.status == "incomplete"
        assert (await own.retrieve(key)).output_text == rest[-1].response.output_text
        cancelled = await own.create(**question, background=True)
        assert (await own.cancel(cancelled.id)).status == "cancelled"
    servers[0].wait_until_ready()
