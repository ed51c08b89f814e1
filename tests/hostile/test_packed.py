"""Replies over HTTP that unpack to more than anybody asked for, or lead elsewhere."""

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from aiohttp import web
from langchain_core.messages import HumanMessage
from tenacity import wait_none

from reflective_agents.environments.wikipedia import Wikipedia
from reflective_agents.models.calls import request
from reflective_agents.models.embeddings import embed, get_embeddings
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import close_models, expect_many_calls, get_model, load_client
from reflective_agents.state.context import Context
from reflective_agents.state.errors import ModelFailed, SearchFailed
from reflective_agents.state.reply_bytes import MOST_IN_PARTS
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.testing.serve import LocalServer
from reflective_agents.web_search.services import search_service
from reflective_agents.web_search.tavily import search_tavily

pytestmark = [pytest.mark.hostile, pytest.mark.wire]
REPLIES = {
    "chat/completions": {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}}]},
    "embeddings": {"data": [{"index": 0, "embedding": [1.0, 0.0]}], "model": "m", "object": "list"},
    "search": {"results": [{"title": "t", "url": "http://a", "content": "Found."}]},
    "api.php": {"query": {"pages": [{"title": "t", "extract": "Found.", "index": 1, "fullurl": "http://a"}]}},
}


def packed(text: str, blanks: int) -> bytes:
    """Pack a text with blanks behind it, which JSON allows, piece by piece."""
    packer = zlib.compressobj(1, wbits=31)
    pieces = [packer.compress(b" " * 1_000_000) for _ in range(blanks // 1_000_000)]
    return b"".join([packer.compress(text.encode()), *pieces, packer.flush()])


class Packing(LocalServer):
    """A server whose replies are right, and packed; with so many blanks behind them, or somewhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.blanks, self.moved, self.encoding = 0, "", "gzip"

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self.answer)]

    async def answer(self, http: web.Request) -> web.StreamResponse:
        if self.moved:
            return web.Response(status=302, headers={"location": f"{self.moved}{http.path_qs}"})
        name = next(name for name in REPLIES if http.path.endswith(name))
        body = await asyncio.to_thread(packed, json.dumps(REPLIES[name]), self.blanks)
        kind = {"content-type": "application/json"}
        return web.Response(body=body, headers={"content-encoding": self.encoding, **kind})


def name_server(environment: pytest.MonkeyPatch, server: Packing) -> None:
    for name, path in {"OPENAI_BASE_URL": "/v1", "TAVILY_BASE_URL": "", "SEARXNG_URL": "/search"}.items():
        environment.setenv(name, server.address + path)
    environment.setenv("TAVILY_API_KEY", "tvly-key")


@pytest.fixture(scope="module")
def running() -> Iterator[Packing]:
    """Start a server, and ask it in every way: what is loaded with the first request is no stranger's doing."""
    with Packing().threaded() as server, pytest.MonkeyPatch.context() as environment:
        name_server(environment, server)
        asyncio.run(load_client("openai:m"))
        for ask in ASK.values():
            asyncio.run(_closing(ask, server))
        yield server


@pytest.fixture
def server(running: Packing, monkeypatch: pytest.MonkeyPatch) -> Packing:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    name_server(monkeypatch, running)
    running.blanks, running.moved, running.encoding = 0, "", "gzip"
    return running


async def _closing(ask: "Ask", server: Packing) -> None:
    await ask(server)
    await close_models()


Ask = Callable[[Packing], Awaitable[Any]]


async def chat(_: Packing) -> Any:
    meter = Meter(Context(), NOTHING_SPENT)
    return (await request(get_model("openai:m"), [HumanMessage("Why?")], meter))[0].text


async def chat_among_many(_: Packing) -> Any:
    expect_many_calls()
    return await chat(_)


async def vectors(_: Packing) -> Any:
    return await embed(get_embeddings("openai:m"), ["a"], Meter(Context(), NOTHING_SPENT))


async def tavily(_: Packing) -> Any:
    return await search_tavily("q", max_results=1)


async def searxng(_: Packing) -> Any:
    return await search_service("searxng", "q", max_results=1)


async def article(server: Packing) -> Any:
    return await Wikipedia(f"{server.address}/w/api.php").article("t")


ASK: dict[str, Ask] = {each.__name__: each for each in (chat, chat_among_many, vectors, tavily, searxng, article)}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ASK)
async def test_a_reply_that_unpacks_without_end_is_not_read(server: Packing, name: str) -> None:
    assert await ASK[name](server) is not None
    server.blanks = MOST_IN_PARTS + 1_000_000
    with pytest.raises((ModelFailed, SearchFailed)):
        await ASK[name](server)
    await close_models()


async def test_what_was_not_asked_for_is_not_unpacked(server: Packing) -> None:
    server.encoding = "zstd"
    with pytest.raises(ModelFailed):
        await chat(server)
    await close_models()


@pytest.mark.parametrize("ask", [tavily, searxng, article], ids=lambda ask: ask.__name__)
async def test_a_search_is_not_sent_to_another_host(server: Packing, ask: Ask) -> None:
    with Packing().threaded() as inner:
        server.moved = inner.address
        with pytest.raises(SearchFailed):
            await ask(server)
