"""Wikipedia as a docstore, against a local server that answers as the MediaWiki API does."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from reflective_agents.environments.docstore import Article
from reflective_agents.environments.questions import Questions
from reflective_agents.environments.wikipedia import MAX_CACHED, USER_AGENT, Wikipedia
from reflective_agents.state.errors import SearchFailed
from reflective_agents.testing.serve import LocalServer, cut_in_half, reset

pytestmark = pytest.mark.wire

SEINE = (
    "The Seine is a river in France.\n\n\n== Course ==\nIt rises near Dijon. It flows through Paris.\n=== Paris ===\n"
)
PAGES: Mapping[str, dict[str, Any]] = {
    "Seine": {"pageid": 1, "ns": 0, "title": "Seine", "extract": SEINE},
    "Mercury": {"pageid": 2, "ns": 0, "title": "Mercury", "extract": "It may be:", "pageprops": {"disambiguation": ""}},
    "Blank": {"pageid": 3, "ns": 0, "title": "Blank", "extract": ""},
}
REDIRECTS = {"La Seine": "Seine"}


class MediaWiki(LocalServer):
    """Answers GET /w/api.php from `PAGES`; a search finds the titles that share a word with it."""

    def __init__(self, fault: str | None = None) -> None:
        super().__init__()
        self.requests: list[dict[str, str]] = []
        self.agents: list[str] = []
        self._fault = fault

    @property
    def url(self) -> str:
        return f"{self.address}/w/api.php"

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/w/api.php", self._answer), web.get("/moved", self._move)]

    async def _move(self, http: web.Request) -> web.StreamResponse:
        raise web.HTTPMovedPermanently(f"/w/api.php?{http.query_string}")

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        query = dict(http.query)
        self.requests.append(query)
        self.agents.append(http.headers["User-Agent"])
        assert {"action": "query", "format": "json", "formatversion": "2"}.items() <= query.items()
        match self._fault:
            case "timeout":
                return await self.hang(http)
            case "reset":
                return reset(http)
            case "error":
                return web.json_response({"error": {"code": "maxlag", "info": "Waiting for a server:\n2 seconds."}})
            case "truncated":
                return cut_in_half(json.dumps({"batchcomplete": True, "query": {}}))
            case "html":
                return web.Response(text="<html>", content_type="text/html")
            case str(address) if "/" in address:
                raise web.HTTPFound(address)
            case str(status):
                return web.Response(status=int(status))
        return web.json_response({"batchcomplete": True, "query": self._find(query)})

    def _find(self, query: dict[str, str]) -> dict[str, Any]:
        if query.get("list") == "search":
            wanted = set(query["srsearch"].lower().split())
            hits = [{"ns": 0, "title": title} for title in PAGES if wanted & set(title.lower().split())]
            return {"search": hits[: int(query["srlimit"])]}
        assert (query["explaintext"], query["redirects"]) == ("1", "1")
        title = query["titles"]
        if set("[]{}<>") & set(title):
            return {"pages": [{"title": title, "invalid": True, "invalidreason": "Bad character."}]}
        missing = {"ns": 0, "title": title, "missing": True}
        return {"pages": [PAGES.get(REDIRECTS.get(title, title), missing)]}


async def test_a_question_is_answered_with_live_articles(monkeypatch: pytest.MonkeyPatch) -> None:
    async with MediaWiki() as server:
        monkeypatch.setenv("WIKIPEDIA_URL", server.url)
        environment = Questions(Wikipedia())
        state = environment.start({"id": "1", "question": "Which city is on the Seine?", "gold": "Paris"})
        seen = []
        for action in ["Search[seine river]", "Search[La Seine]", "Lookup[it]", "Lookup[it]", "Finish[Paris]"]:
            transition = await environment.step(state, action)
            state = transition.state
            seen.append(transition.observation)
    assert seen == [
        "Could not find [seine river]. Similar: ['Seine']",
        "The Seine is a river in France.",
        "(Result 1 / 2) It rises near Dijon.",
        "(Result 2 / 2) It flows through Paris.",
        "Finished.",
    ]
    assert (state["page"], transition.reward) == ("Seine", 1.0)
    assert len(server.requests) == 3, "a Lookup asks for nothing"


@pytest.mark.parametrize("title", ["Nowhere", "Mercury", "[bad]"])
async def test_titles_without_an_article(title: str) -> None:
    async with MediaWiki() as server:
        assert await Wikipedia(server.url).article(title) is None


async def test_headings_are_left_out() -> None:
    async with MediaWiki() as server:
        article = await Wikipedia(server.url).article("Seine")
    assert article is not None
    assert article.paragraphs() == ["The Seine is a river in France.", "It rises near Dijon. It flows through Paris."]


async def test_an_empty_article_counts_as_not_found() -> None:
    async with MediaWiki() as server:
        environment = Questions(Wikipedia(server.url))
        found = await environment.step(environment.start({"id": "1", "question": "?"}), "Search[Blank]")
    assert found.observation == "Could not find [Blank]. Similar: ['Blank']"


async def test_titles_are_one_title_of_bounded_length() -> None:
    async with MediaWiki() as server:
        await Wikipedia(server.url).article("Seine|Mercury \ud800" + "x" * 999)
        await Wikipedia(server.url).similar("x" * 999)
    title = server.requests[0]["titles"]
    assert title.startswith("Seine Mercury x")
    assert len(title) == len(server.requests[1]["srsearch"]) == 250


async def test_requests_name_themselves() -> None:
    async with MediaWiki() as server:
        await Wikipedia(server.url).similar("Seine")
        await Wikipedia(server.url, user_agent="mine/1 (me@example.com)").similar("Seine")
    assert server.agents == [USER_AGENT, "mine/1 (me@example.com)"]


async def test_articles_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflective_agents.environments.wikipedia.MAX_CACHED", 2)
    assert MAX_CACHED > 2
    async with MediaWiki() as server:
        wikipedia = Wikipedia(server.url)
        for title in ["Seine", "Seine", "Blank", "La Seine", "Seine", "Blank"]:
            await wikipedia.article(title)
    assert [request["titles"] for request in server.requests] == ["Seine", "Blank", "La Seine", "Blank"]


async def test_many_questions_at_once() -> None:
    async with MediaWiki() as server:
        wikipedia = Wikipedia(server.url)
        articles = await asyncio.gather(*(wikipedia.article("Seine") for _ in range(20)))
    assert articles == [Article("Seine", articles[0].text if articles[0] else "")] * 20


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("timeout", "Wikipedia did not answer within 0.2 seconds."),
        ("reset", "The connection to Wikipedia failed (RemoteProtocolError)."),
        ("error", "Wikipedia refuses: Waiting for a server: 2 seconds."),
        ("truncated", "Wikipedia's reply could not be read."),
        ("html", "Wikipedia's reply could not be read."),
        ("429", "Wikipedia failed (HTTP 429)."),
        ("503", "Wikipedia failed (HTTP 503)."),
    ],
)
async def test_faults_are_told_as_observations(fault: str, message: str) -> None:
    async with MediaWiki(fault) as server:
        wikipedia = Wikipedia(server.url, timeout=0.2 if fault == "timeout" else 20)
        environment = Questions(wikipedia)
        state = environment.start({"id": "1", "question": "?"})
        transition = await environment.step(state, "Search[Seine]")
        with pytest.raises(SearchFailed):
            await wikipedia.similar("Seine")
    assert transition == (state, f"{message} Try again, or try something else.", None, False, True)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1/w/api.php", "The connection to Wikipedia failed"),
        ("wikipedia", "WIKIPEDIA_URL is no valid address"),
        ("http://localhost:port", "WIKIPEDIA_URL is no valid address"),
    ],
)
async def test_wrong_addresses(url: str, message: str) -> None:
    with pytest.raises(SearchFailed, match=message):
        await Wikipedia(url).article("Seine")


@pytest.mark.hostile
async def test_redirects_lead_to_no_other_host() -> None:
    async with MediaWiki() as inner:
        port = inner.address.rpartition(":")[2]
        for target in (inner.url, f"http://localhost:{port}/w/api.php"):
            async with MediaWiki(target) as server:
                with pytest.raises(SearchFailed, match="redirects to"):
                    await Wikipedia(server.url).article("Seine")
                assert len(server.requests) == 1
    assert inner.requests == []


async def test_redirects_on_the_same_host_are_followed() -> None:
    async with MediaWiki() as server:
        assert await Wikipedia(f"{server.address}/moved").article("Seine")
    assert len(server.requests) == 1
