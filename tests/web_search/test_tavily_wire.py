"""Tavily's own client against a local server that speaks its protocol."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from reflective_agents.state.errors import SearchFailed
from reflective_agents.testing.tavily_server import SearchFault, TavilyServer
from reflective_agents.web_search.engines import Search, make_search, search_tool

pytestmark = pytest.mark.wire

KEY = "tvly-secret"


@pytest.fixture(autouse=True)
def tavily_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", KEY)


def tavily(server_url: str, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Search:
    monkeypatch.setenv("TAVILY_BASE_URL", server_url)
    search = make_search("tavily", None, **settings)
    assert search is not None
    return search


async def test_results_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"title": "Paris", "url": "https://example.com/paris", "content": "The capital of France."}
    async with TavilyServer({"capital of France": [page]}) as server:
        assert await tavily(server.url, monkeypatch)("capital of France") == [page]
    assert server.requests == [{"query": "capital of France", "max_results": 5}]
    assert server.keys == [KEY]


async def test_results_without_text_or_title(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[dict[str, Any]] = [
        {"title": "Empty", "url": "https://example.com/1", "content": None},
        {"title": None, "url": "https://example.com/2", "content": " Text. "},
    ]
    async with TavilyServer(pages) as server:
        found = await tavily(server.url, monkeypatch)("q")
    assert found == [{"title": "https://example.com/2", "url": "https://example.com/2", "content": "Text."}]


async def test_number_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    async with TavilyServer() as server:
        assert len(await tavily(server.url, monkeypatch, max_results=1)("q")) == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("401", "Tavily does not accept the key in TAVILY_API_KEY (401)."),
        ("429", "Tavily refuses: too many requests (429)."),
        (
            "432",
            "Tavily refuses: the plan's limit is reached or the request is forbidden."
            " It says: This request exceeds your plan's set usage limit.",
        ),
        ("500", "Tavily failed (HTTP 500)."),
        ("timeout", "The search took longer than 0.2 seconds and was given up."),
        ("reset", "The connection to Tavily failed (RemoteProtocolError)."),
        ("truncated_json", "Tavily's reply could not be read."),
        ("no_results", "Nothing was found: try other or fewer words."),
    ],
)
async def test_each_fault_is_one_clear_sentence(
    fault: SearchFault, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with TavilyServer(fault=fault) as server:
        search = tavily(server.url, monkeypatch, timeout=0.2 if fault == "timeout" else 20)
        with pytest.raises(SearchFailed) as caught:
            await search("q")
    assert str(caught.value) == message


async def test_fault_is_told_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async with TavilyServer(fault="500") as server:
        tool = search_tool(tavily(server.url, monkeypatch))
        answer = await tool.ainvoke({"name": "search", "args": {"query": "q"}, "id": "1", "type": "tool_call"})
    assert (answer.status, answer.content) == ("error", "Tavily failed (HTTP 500).")


@pytest.fixture
async def odd_server() -> AsyncIterator[tuple[str, dict[str, web.Response]]]:
    """A server that sends whatever stands under "reply"."""
    replies: dict[str, web.Response] = {}

    async def answer(_: web.Request) -> web.Response:
        return replies["reply"]

    app = web.Application()
    app.add_routes([web.post("/search", answer)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", replies
    await runner.cleanup()


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{}", 200, "Nothing was found"),
        ("[]", 200, "Tavily's reply could not be read"),
        ("null", 200, "Tavily's reply could not be read"),
        ('{"results": null}', 200, "Tavily's reply could not be read"),
        ('{"results": [{"content": "no address"}]}', 200, "Tavily's reply could not be read"),
        ("", 204, "Tavily's reply could not be read"),
        ('{"detail": {"error": "Query is too\\nlong."}}', 400, r"request \(400\)\. It says: Query is too long\.$"),
        ("<html>", 433, r"Tavily refuses: the plan's limit is reached or the request is forbidden\.$"),
        ("<html>", 302, r"Tavily failed \(HTTP 302\)"),
    ],
)
async def test_odd_replies(
    odd_server: tuple[str, dict[str, web.Response]],
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    status: int,
    message: str,
) -> None:
    url, replies = odd_server
    replies["reply"] = web.Response(text=body or None, status=status, content_type="application/json")
    with pytest.raises(SearchFailed, match=message):
        await tavily(url, monkeypatch)("q")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://127.0.0.1:1", r"The connection to Tavily failed \(ConnectError\)"),
        ("nonsense", "TAVILY_BASE_URL is no valid address"),
    ],
)
async def test_wrong_address(monkeypatch: pytest.MonkeyPatch, address: str, message: str) -> None:
    with pytest.raises(SearchFailed, match=message) as caught:
        await tavily(address, monkeypatch)("q")
    assert KEY not in str(caught.value)
