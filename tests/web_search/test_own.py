"""Search engines of one's own."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from reflective_agents.graphs import graph_of
from reflective_agents.state.errors import SearchFailed
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.web_search.engines import make_search

PAGE = {"title": "Towers", "url": "https://example.com/towers", "content": "The tower is 330 m high."}
ASK: Any = {"messages": [("user", "How high is the tower?")]}


class Shelf(BaseRetriever):
    """A retriever with one document."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(f"{query}: 330 m", metadata={"source": "shelf.txt", "title": "Towers"})]


def listing(query: str) -> list[dict[str, str]]:
    return [{"title": "Towers", "link": "https://example.com/towers", "snippet": f"{query}: 330 m"}]


async def awaited(query: str) -> list[str]:
    return [f"{query}: 330 m", ""]


@pytest.mark.parametrize(
    ("engine", "url"),
    [(Shelf(), "shelf.txt"), (listing, "https://example.com/towers"), (awaited, r"awaited:[0-9a-f]{12}")],
    ids=["retriever", "function", "coroutine"],
)
async def test_results_of_any_kind_become_sources(engine: Any, url: str) -> None:
    search = make_search(engine, None)
    assert search
    [found] = await search("tower")
    assert found["content"] == "tower: 330 m"
    assert re.fullmatch(url, found["url"])


def broken(query: str) -> list[str]:
    raise ConnectionError("no network")


def breaks_off(query: str) -> Iterator[str]:
    yield f"{query}: 330 m"
    raise ConnectionError("no network")


async def test_a_generator_does_not_hold_the_event_loop() -> None:
    ticking = threading.Event()

    def waits(query: str) -> Iterator[str]:
        assert ticking.wait(20), "nothing else runs meanwhile"
        yield f"{query}: 330 m"

    search = make_search(waits, None)
    assert search
    asyncio.get_running_loop().call_later(0.01, ticking.set)
    [found] = await search("tower")
    assert found["content"] == "tower: 330 m"


async def test_a_text_that_cannot_be_stored_is_a_source_too() -> None:
    search = make_search(lambda query: [f"{query}: 330 m \ud83d"], None)
    assert search
    [found] = await search("tower")
    assert re.fullmatch(r"<lambda>:[0-9a-f]{12}", found["url"])


@pytest.mark.parametrize(
    ("engine", "problem"),
    [
        (broken, "broken failed: ConnectionError: no network"),
        (breaks_off, "breaks_off failed: ConnectionError: no network"),
        (lambda query: None, "returned NoneType, not a list"),
        (lambda query: "text", "returned str, not a list"),
        (lambda query: [], "Nothing was found"),
    ],
)
async def test_what_goes_wrong_is_told(engine: Callable[[str], Any], problem: str) -> None:
    search = make_search(engine, None)
    assert search
    with pytest.raises(SearchFailed, match=problem):
        await search("tower")


@pytest.mark.hostile
async def test_a_failure_that_quotes_a_key_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELF_TOKEN", "planted-0123456789")

    def fails(query: str) -> list[Any]:
        raise ConnectionError("401 for https://shelf.example/?token=planted-0123456789")

    search = make_search(fails, None)
    assert search
    with pytest.raises(SearchFailed, match=r"failed: ConnectionError: 401 for .*token=\[SHELF_TOKEN\]"):
        await search("tower")


def agent(request: Request) -> Reply:
    results = [message.text for message in request.messages if message.type == "tool"]
    return f"I found {results[-1]}" if results else ToolUse("search", {"query": "tower"})


@pytest.mark.parametrize("strategy", ["react", "lats"])
async def test_an_agent_searches_with_a_retriever(strategy: str) -> None:
    def reply(request: Request) -> Reply:
        return {"reasoning": "Good.", "score": 0.9, "solved": True} if request.schema else agent(request)

    graph: Any = graph_of(strategy)
    result = await graph.ainvoke(ASK, context={"model": FakeChatModel(reply=reply), "search": Shelf()})
    assert "shelf.txt" in result["answer"]
    assert result["usage"]["tool_calls"] >= 1


@pytest.mark.parametrize("engine", ["yahoo", 7, ["local"]])
async def test_other_engines_are_refused(engine: object) -> None:
    graph: Any = graph_of("react")
    with pytest.raises(ValueError, match="a search is one of tavily, local, none, searxng"):
        await graph.ainvoke(ASK, context={"model": "offline", "search": engine})
