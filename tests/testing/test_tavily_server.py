"""The local Tavily server through the real client."""

import json
from typing import Any

import httpx
import pytest
from tavily import AsyncTavilyClient, TavilyClient
from tavily.errors import ForbiddenError, InvalidAPIKeyError, TimeoutError, UsageLimitExceededError

from reflective_agents.testing.tavily_server import DEFAULT_RESULTS, SearchFault, TavilyServer

pytestmark = pytest.mark.wire

PARIS = {"title": "Paris", "url": "https://example.com/paris", "content": "The capital of France."}


async def search(server: TavilyServer, query: str = "capital", **options: Any) -> list[dict[str, Any]]:
    async with AsyncTavilyClient("tvly-test", api_base_url=server.url) as client:
        found: dict[str, Any] = await client.search(query, **options)
    assert found["query"] == query
    results: list[dict[str, Any]] = found["results"]
    return results


async def test_results_are_ranked_and_requests_recorded() -> None:
    async with TavilyServer() as server:
        results = await search(server, max_results=1)
    assert results == [{**DEFAULT_RESULTS[0], "score": 1.0, "raw_content": None}]
    assert server.requests == [{"query": "capital", "max_results": 1}]
    assert server.keys == ["tvly-test"]


@pytest.mark.parametrize("results", [{"capital": [PARIS]}, lambda query: [PARIS] if query == "capital" else []])
async def test_results_for_each_query(results: Any) -> None:
    async with TavilyServer(results) as server:
        assert [result["title"] for result in await search(server, "capital")] == ["Paris"]
        assert await search(server, "river") == []


async def test_five_results_unless_asked_otherwise() -> None:
    async with TavilyServer([PARIS] * 9) as server:
        assert len(await search(server)) == 5
        assert len(await search(server, max_results=8)) == 8


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("401", InvalidAPIKeyError),
        ("429", UsageLimitExceededError),
        ("432", ForbiddenError),
        ("500", httpx.HTTPStatusError),
        ("timeout", TimeoutError),
        ("reset", httpx.TransportError),
        ("truncated_json", json.JSONDecodeError),
    ],
)
async def test_faults(fault: SearchFault, error: type[Exception]) -> None:
    async with TavilyServer(fault=fault) as server:
        with pytest.raises(error):
            await search(server, timeout=0.2 if fault == "timeout" else 20)


async def test_no_results() -> None:
    async with TavilyServer(fault="no_results") as server:
        assert await search(server) == []


async def test_faults_can_pass() -> None:
    async with TavilyServer(fault=lambda query, number: "500" if number == 0 else None) as server:
        with pytest.raises(httpx.HTTPStatusError):
            await search(server)
        assert len(await search(server)) == 2


async def test_a_search_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    async with TavilyServer() as server, AsyncTavilyClient(api_base_url=server.url) as client:
        with pytest.raises(InvalidAPIKeyError, match="API key"):
            await client.search("capital")
    assert server.keys == [""]


def test_a_server_in_a_thread_serves_synchronous_code() -> None:
    with TavilyServer().threaded() as server:
        client = TavilyClient("tvly-test", api_base_url=server.url)
        assert len(client.search("capital")["results"]) == 2
        client.close()
