"""The client for many calls tells a connection that broke off from one that was never made, and leaves none open."""

import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tenacity import wait_none

from reflective_agents.graphs import chain_of_thought
from reflective_agents.models.aiohttp_client import AioHttpClient
from reflective_agents.models.event_loops import of_this_loop
from reflective_agents.models.providers import close_models, expect_many_calls
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.faults import Fault
from reflective_agents.testing.openai_server import OpenAIServer

pytestmark = pytest.mark.wire


@pytest.fixture(autouse=True)
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    expect_many_calls()
    assert isinstance(of_this_loop().client, AioHttpClient)
    yield
    await close_models()
    gc.collect()  # a session that nobody closed would warn, and fail the test


async def ran(monkeypatch: pytest.MonkeyPatch, address: str) -> dict[str, Any]:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    context = ChainOfThoughtContext(model="openai:test", samples=1, call_timeout=1)
    result: dict[str, Any] = await chain_of_thought.graph.ainvoke({"messages": [("user", "6 * 7?")]}, context=context)
    return result


@pytest.mark.matrix
@pytest.mark.parametrize(("fault", "paid"), [("reset", True), ("timeout", True), ("429", False), ("500", False)])
async def test_a_call_that_may_have_been_answered_counts(
    fault: Fault, paid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with OpenAIServer(lambda _: "Answer: 42", faults=lambda *_: fault) as server:
        result = await ran(monkeypatch, server.base_url)
    usage = result["usage"]
    assert result["outcome"]["status"] == "failed"
    assert usage["model_calls"] == usage["failed_calls"] == len(server.requests) == 3
    assert (usage["total_tokens"] > 0) == paid


@pytest.mark.thorough
async def test_a_server_that_is_not_there_costs_nothing(monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> None:
    result = await ran(monkeypatch, f"http://127.0.0.1:{unused_tcp_port}/v1")
    reason = result["outcome"]["reason"]
    assert "no connection to" in reason
    assert "timed out" not in reason
    assert result["usage"]["total_tokens"] == 0


@pytest.mark.thorough
async def test_a_fault_in_between_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIServer(lambda _: "Answer: 42", faults=lambda _, count: None if count else "reset") as server:
        result = await ran(monkeypatch, server.base_url)
    assert (result["answer"], result["usage"]["failed_calls"]) == ("42", 1)
