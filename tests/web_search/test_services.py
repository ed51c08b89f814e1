"""Search services that need no key, asked on this machine; and a retriever of langchain-community's."""

import json
import sys
import warnings
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from reflective_agents.graphs import graph_of
from reflective_agents.state.errors import MissingKey, Misuse, SearchFailed
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.testing.searxng_server import SearxNGServer
from reflective_agents.testing.serve import LocalServer
from reflective_agents.web_search import services
from reflective_agents.web_search.engines import make_search
from reflective_agents.web_search.results import SearchResult

PAGE = {"title": "Towers", "url": "https://example.com/towers", "content": "The tower is 330 m high."}
ASK: Any = {"messages": [("user", "How high is the tower?")]}
ARTICLES = """<?xml version="1.0"?><PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>17</PMID><Article>
<ArticleTitle>Of <i>towers</i></ArticleTitle><Abstract><AbstractText Label="AIM">To measure.</AbstractText>
<AbstractText Label="RESULT">It is 330 m<sup>1</sup> high.</AbstractText></Abstract></Article></MedlineCitation>
</PubmedArticle></PubmedArticleSet>"""
EXTRACTS = [
    {"index": 2, "title": "Mast", "fullurl": "https://en.wikipedia.org/wiki/Mast", "extract": "A pole."},
    {"index": 1, "title": "Tower", "fullurl": "https://en.wikipedia.org/wiki/Tower", "extract": "A tall building."},
]
ANSWERS = {
    "/esearch.fcgi": json.dumps({"esearchresult": {"webenv": "env", "idlist": ["17"]}}),
    "/efetch.fcgi": ARTICLES,
    "/w/api.php": json.dumps({"query": {"pages": EXTRACTS}}),
}


async def search(engine: Any, query: str, max_results: int = 5) -> list[SearchResult]:
    asking = make_search(engine, None, max_results=max_results)
    assert asking
    return await asking(query)


class Services(LocalServer):
    """What PubMed and Wikipedia answer; keeps what they are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[dict[str, str]] = []

    def routes(self) -> list[web.RouteDef]:
        """Answer any path."""
        return [web.get("/{path:.*}", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append(dict(request.query))
        return web.Response(text=ANSWERS[request.path])


@pytest.fixture
async def servers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Services]:
    async with Services() as server:
        monkeypatch.setattr(services, "PUBMED", server.address)
        monkeypatch.setattr(services, "WIKIPEDIA", server.address)
        yield server


@pytest.fixture
async def searxng(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SearxNGServer]:
    async with SearxNGServer([PAGE, {**PAGE, "title": "Empty", "content": ""}]) as server:
        monkeypatch.setenv("SEARXNG_URL", server.address)
        yield server


def agent(request: Request) -> Reply:
    if request.messages[-1].type == "tool":
        return f"It is so [1]: {request.last}"
    return ToolUse("search", {"query": "tower"})


@pytest.mark.wire
async def test_searxng(searxng: SearxNGServer) -> None:
    assert await search("searxng", "tower height") == [PAGE]
    assert searxng.queries == ["tower height"]


@pytest.mark.wire
async def test_a_run_searches_with_searxng(searxng: SearxNGServer) -> None:
    graph: Any = graph_of("react")
    result = await graph.ainvoke(ASK, context={"model": FakeChatModel(reply=agent), "search": "searxng"})
    assert PAGE["content"] in result["answer"]
    assert searxng.queries == ["tower"]


@pytest.mark.wire
async def test_a_service_that_fails_is_told_without_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async with SearxNGServer([], status=500) as server:
        monkeypatch.setenv("SEARXNG_URL", server.address)
        with pytest.raises(SearchFailed, match="searxng failed") as failure:
            await search("searxng", "tower")
    assert str(server.port) not in str(failure.value)


async def test_searxng_needs_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARXNG_URL", raising=False)
    graph: Any = graph_of("react")
    with pytest.raises(MissingKey, match="SEARXNG_URL"):
        await graph.ainvoke(ASK, context={"model": "offline", "search": "searxng"})


@pytest.mark.wire
async def test_pubmed_finds_abstracts(servers: Services) -> None:
    [article] = await search("pubmed", "tower & mast", 3)
    assert article["title"] == "Of towers"
    assert article["url"] == "https://pubmed.ncbi.nlm.nih.gov/17/"
    assert article["content"] == "To measure.\nIt is 330 m1 high."
    assert [servers.requests[0]["term"], servers.requests[0]["retmax"]] == ["tower & mast", "3"]
    assert servers.requests[1]["id"] == "17"


@pytest.mark.wire
async def test_wikipedia_finds_introductions_the_best_first(servers: Services) -> None:
    pages = await search("wikipedia", "tower", 2)
    assert [page["title"] for page in pages] == ["Tower", "Mast"]
    assert pages[0]["url"] == "https://en.wikipedia.org/wiki/Tower"
    assert [servers.requests[0]["gsrsearch"], servers.requests[0]["gsrlimit"]] == ["tower", "2"]


async def test_arxiv_is_asked_by_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    arxiv = pytest.importorskip("arxiv")
    now = datetime(2023, 5, 8, tzinfo=UTC)
    paper = arxiv.Result(entry_id="http://arxiv.org/abs/1", updated=now, published=now, title="T", summary="S")
    requests: list[Any] = []

    def results(client: Any, query: Any) -> Iterator[Any]:
        requests.append(query)
        yield paper

    monkeypatch.setattr(arxiv.Client, "results", results)
    assert await search("arxiv", "tower", 3) == [SearchResult(title="T", url="http://arxiv.org/abs/1", content="S")]
    assert [(query.query, query.max_results) for query in requests] == [("tower", 3)]


async def test_duckduckgo_is_asked_by_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    ddgs = pytest.importorskip("ddgs")
    hit = {"title": "T", "href": "https://example.com", "body": "S"}
    monkeypatch.setattr(ddgs, "DDGS", lambda: SimpleNamespace(text=lambda query, max_results: [hit] * max_results))
    assert (
        await search("duckduckgo", "tower", 2) == [SearchResult(title="T", url="https://example.com", content="S")] * 2
    )


async def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arxiv", None)
    graph: Any = graph_of("react")
    with pytest.raises(Misuse, match=r"pip install 'reflective-agents\[community\]'"):
        await graph.ainvoke(ASK, context={"model": "offline", "search": "arxiv"})


@pytest.mark.wire
async def test_a_retriever_of_langchain_community_is_a_search(servers: Services) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is archived
        pytest.importorskip("langchain_community")
        retrievers = import_module("langchain_community.retrievers")
        paths = {f"base_url_{name}": f"{servers.address}/{name}.fcgi?" for name in ("esearch", "efetch")}
        results = await search(retrievers.PubMedRetriever(**paths), "tower")
    assert "330 m" in results[0]["content"]
    assert results[0]["url"].startswith("PubMedRetriever:")
