"""LangGraph's own clients, and OpenAI's responses, on Aegra."""

from collections.abc import Awaitable, Callable

import openai
import pytest
from langgraph_sdk.client import LangGraphClient

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


async def test_a_response_is_its_users(servers: list[Server]) -> None:
    async def follow(user: str, server: Server) -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.address}/v1", api_key=KEYS[user], max_retries=0) as client:
            model, earlier = "chain_of_thought:offline", previous[-1] if previous else None
            return (await client.responses.create(model=model, input="Why?", previous_response_id=earlier)).id

    previous: list[str] = []
    previous.append(await follow("ann", servers[0]))
    assert await follow("ann", servers[1]) not in previous  # two go on from the same one
    assert await follow("ann", servers[0]) not in previous
    with pytest.raises(openai.NotFoundError):
        await follow("bob", servers[0])
