"""What a client gets that sends a request again, or while a database is away."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest

from reflective_agents.testing.openai_server import OpenAIServer
from tests.aegra.outage import Outage
from tests.aegra.process import KEYS, Server
from tests.aegra.test_runs import asking, ended

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(300)]

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {"city": {}}}}}
    for name in ("weather", "wind")
]
Messages = list[dict[str, Any]]


async def complete(server: Server, messages: Messages, **fields: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {KEYS['ann']}"}
    body = {"model": "react", "messages": messages, "settings": {"search": "none"}, **fields}
    async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=120) as client:
        return await client.post("/v1/chat/completions", json=body)


async def with_result(server: Server, messages: Messages, result: str) -> Messages:
    """Ask, and return the conversation with the result of the tool that the answer calls."""
    answer = await complete(server, messages, tools=TOOLS)
    assert answer.status_code == 200, answer.text
    message = answer.json()["choices"][0]["message"]
    [call] = message["tool_calls"]
    return [*messages, message, {"role": "tool", "tool_call_id": call["id"], "content": result}]


async def while_away(away_for_some_seconds: Callable[[], None], request: Callable[[], Any]) -> Any:
    """Send a request while a database is away."""
    away = asyncio.create_task(asyncio.to_thread(away_for_some_seconds))
    await asyncio.sleep(0.5)
    answer = await request()
    await away
    return answer


async def test_a_run_that_is_stored_while_redis_is_away_is_accepted(
    servers: list[Server], model_server: OpenAIServer, outage: Outage
) -> None:
    before, thread, client = len(model_server.requests), str(uuid4()), servers[0].client()

    async def create() -> str:
        run = await client.runs.create(thread, "chain_of_thought", input=asking("Why?"), if_not_exists="create")
        return str(run["run_id"])

    run = await while_away(outage.of_redis, create)
    [values] = await ended(servers[1], [(thread, run)], 60)
    assert [message["type"] for message in values["messages"]] == ["human", "ai"]
    answer = await while_away(outage.of_redis, lambda: complete(servers[1], [{"role": "user", "content": "And who?"}]))
    assert answer.status_code == 200
    assert len(model_server.requests) == before + 2


async def test_results_of_tools_are_taken_while_redis_is_away(servers: list[Server], outage: Outage) -> None:
    messages = await with_result(servers[0], [{"role": "user", "content": "How is Oslo?"}], "The weather is fine.")
    answer = await while_away(outage.of_redis, lambda: complete(servers[0], messages, tools=TOOLS))
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["finish_reason"] == "tool_calls"


async def test_who_comes_while_postgres_is_away_is_told_when_to_try_again(
    servers: list[Server], outage: Outage
) -> None:
    messages: Messages = [{"role": "user", "content": "Why?"}]

    async def both() -> list[httpx.Response]:
        headers = {"authorization": f"Bearer {KEYS['ann']}"}
        async with httpx.AsyncClient(base_url=servers[0].address, headers=headers, timeout=60) as client:
            return [await complete(servers[0], messages), await client.get(f"/threads/{uuid4()}/state")]

    for answer in await while_away(outage.of_postgres, both):
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    await asyncio.sleep(1)
    assert (await complete(servers[0], messages)).status_code == 200


async def test_results_whose_client_has_left_can_be_sent_again(
    servers: list[Server], model_server: OpenAIServer
) -> None:
    question = {"role": "user", "content": "How is slow Oslo?"}
    messages = await with_result(servers[0], [question], "The weather is fine.")
    before = len(model_server.requests)
    leaving = asyncio.create_task(complete(servers[0], messages, tools=TOOLS, on_disconnect="continue"))
    while len(model_server.requests) == before:  # noqa: ASYNC110 # of another thread
        await asyncio.sleep(0.05)
    leaving.cancel()
    again = await complete(servers[1], messages, tools=TOOLS)
    assert again.json()["choices"][0]["finish_reason"] == "tool_calls"
    assert len(model_server.requests) == before + 1


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("delay", [0.0, 0.5, 3.0])  # seconds: before it goes on, meanwhile, and afterwards
async def test_who_sends_results_again_after_a_kill_gets_the_answer(
    servers: list[Server], model_server: OpenAIServer, start: Callable[[], Server], last: bool, delay: float
) -> None:
    question = {"role": "user", "content": "How is slow Oslo?"}
    messages = await with_result(servers[0], [question], "The weather is fine.")
    if last:
        messages = await with_result(servers[0], messages, "The wind is weak.")
    before = len(model_server.requests)
    sending = asyncio.create_task(complete(servers[0], messages, tools=TOOLS))
    await asyncio.sleep(0.3)
    servers[0].end(signal.SIGKILL)
    with pytest.raises(httpx.TransportError):
        await sending
    await asyncio.sleep(delay)
    again = await complete(servers[1], messages, tools=TOOLS)
    assert again.status_code == 200, again.text
    choice = again.json()["choices"][0]
    assert choice["finish_reason"] == ("stop" if last else "tool_calls")
    # The step that the killed process was at may be paid twice, and no other one.
    assert 1 <= len(model_server.requests) - before <= 2
    assert 1 <= cast(int, again.json()["usage"]["model_calls"]) <= 2
    servers[0] = start()
    servers[0].wait_until_ready()
