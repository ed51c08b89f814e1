"""The Model Context Protocol's own client, pointed at the server: a strategy is a tool."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from reflective_agents.state.settings import strategy_names
from reflective_agents.testing.openai_server import OpenAIServer

if TYPE_CHECKING:
    from mcp import ClientSession

pytestmark = [pytest.mark.studio, pytest.mark.xdist_group("studio")]
WHY = "Why is reflection useful?"


@asynccontextmanager
async def connected(address: str) -> "AsyncIterator[ClientSession]":
    from mcp import ClientSession  # takes seconds to load
    from mcp.client.streamable_http import streamable_http_client

    async with streamable_http_client(f"{address}/mcp") as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@pytest.mark.thorough
async def test_a_call_needs_no_session(address: str) -> None:
    params = {"name": "reflection", "arguments": {"question": WHY, "settings": {"max_rounds": 1}}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with httpx.AsyncClient(headers={"accept": "application/json, text/event-stream"}, timeout=60) as http:
        answer = (await http.post(f"{address}/mcp", json=call)).json()
    assert answer["result"]["structuredContent"]["answer"] == f"Answer to: {WHY}"


@pytest.mark.thorough
async def test_the_tools_are_the_strategies(address: str) -> None:
    async with connected(address) as session:
        tools = (await session.list_tools()).tools
    assert [tool.name for tool in tools] == list(strategy_names())
    assert all(tool.inputSchema["required"] == ["question"] for tool in tools)


@pytest.mark.thorough
async def test_a_call_returns_the_answer_the_outcome_and_the_usage(address: str, openai_server: OpenAIServer) -> None:
    before = len(openai_server.requests)
    async with connected(address) as session:
        result = await session.call_tool("reflection", {"question": WHY, "settings": {"max_rounds": 2}})
    content = result.structuredContent
    assert result.content[0].type == "text"
    assert content
    assert content.keys() == {"answer", "outcome", "usage"}
    assert content["answer"] == result.content[0].text == f"Answer to: {WHY}"
    assert content["outcome"]["status"] == "solved"
    assert content["usage"]["model_calls"] == len(openai_server.requests) - before


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("settings", "reason"), [({"max_round": 2}, "max_round"), ({"corpus": "/etc"}, "corpus"), ({"model": "x:y"}, "x:y")]
)
async def test_what_cannot_be_done_is_an_error_of_the_tool(
    address: str, settings: dict[str, object], reason: str
) -> None:
    async with connected(address) as session:
        result = await session.call_tool("reflection", {"question": WHY, "settings": settings})
    assert result.isError
    assert result.content[0].type == "text"
    assert reason in result.content[0].text


@pytest.mark.thorough
async def test_progress_is_told_to_whom_it_matters_and_a_thread_goes_on(
    address: str, openai_server: OpenAIServer
) -> None:
    lines: list[str] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        lines.append(f"{progress:.0f} {message}".partition(":")[0])

    async with connected(address) as session:
        call = {"question": "Why is the sea salty?", "thread": "sea"}
        await session.call_tool("reflection", {**call, "settings": {"max_rounds": 2}}, progress_callback=tell)
        assert lines == ["1 begin", "2 draft", "3 critique", "4 end"]
        await session.call_tool("reflection", {"question": "And why blue?", "thread": "sea"})
        assert "Why is the sea salty?" in str(openai_server.requests[-1])
        await session.call_tool("reflection", {"question": "And why deep?"})
        assert "sea" not in str(openai_server.requests[-1])
