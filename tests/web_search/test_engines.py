"""The setting, the cache and the tool of the search."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from reflective_agents.state.errors import MissingKey, Misuse, SearchFailed
from reflective_agents.web_search.engines import (
    MAX_CACHED_RUNS,
    Search,
    cached,
    choose_search,
    make_search,
    search_tool,
)
from reflective_agents.web_search.results import SearchResult

FOUND: list[SearchResult] = [{"title": "Größe", "url": "corpus:a.md", "content": "<b>data</b>"}]


class Engine:
    """Counts what it is asked; holds its answers back until the gate is opened."""

    def __init__(self, *, failures: int = 0, waits: bool = False) -> None:
        self.queries: list[str] = []
        self.cancelled = 0
        self.failures = failures
        self.waits = waits
        self.gate = asyncio.Event()

    async def __call__(self, query: str) -> list[SearchResult]:
        self.queries.append(query)
        if self.waits:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if len(self.queries) <= self.failures:
            raise SearchFailed("The engine is down.")
        return [result.copy() for result in FOUND]


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    return str(request.node.nodeid)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_search_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_search(None) == ("local", "TAVILY_API_KEY is not set")
    monkeypatch.setenv("TAVILY_API_KEY", " ")
    assert choose_search(None) == ("local", "TAVILY_API_KEY is not set")
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-x")
    assert choose_search(None) == ("tavily", "TAVILY_API_KEY is set")
    assert choose_search("local") == ("local", "asked for")
    assert choose_search("tavily") == ("tavily", "asked for")
    assert choose_search("none") == ("none", "asked for")


def test_tavily_without_a_key_is_refused() -> None:
    with pytest.raises(
        MissingKey, match=r"^Tavily search needs a key: set TAVILY_API_KEY, or choose the local search\.$"
    ):
        choose_search("tavily")
    with pytest.raises(MissingKey):
        make_search("tavily", None)


def test_unknown_search_is_refused() -> None:
    with pytest.raises(Misuse, match="Unknown search 'google': choose one of tavily, local, none"):
        choose_search("google")


def test_no_search() -> None:
    assert make_search("none", None) is None


def local(corpus: Path | None, **settings: Any) -> Search:
    search = make_search("local", str(corpus) if corpus else None, **settings)
    assert search is not None
    return search


async def test_local_search_bounds_its_results() -> None:
    assert len(await local(None, max_results=2)("reflection")) == 2
    assert len(await local(None)("reflection")) == 5


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (" \n", "The query is empty: say what to search for."),
        ("xylophone", "Nothing was found: try other or fewer words."),
    ],
)
async def test_local_search_says_why_it_failed(query: str, message: str) -> None:
    with pytest.raises(SearchFailed) as caught:
        await local(None)(query)
    assert str(caught.value) == message


async def test_folder_that_has_gone_is_a_failed_search(tmp_path: Path) -> None:
    with pytest.raises(SearchFailed, match="There is no folder"):
        await local(tmp_path / "gone")("reflection")


async def test_search_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(SearchFailed, match=r"^The search took longer than 1e-06 seconds and was given up\.$"):
        await local(None, timeout=1e-6)("reflection")


@pytest.mark.thorough
async def test_fifty_local_searches_at_once() -> None:
    first, *others = await asyncio.gather(*(local(None)("Why is reflection useful?") for _ in range(50)))
    assert first[0]["url"] == "corpus:reflection.md"
    assert others == [first] * 49


def test_local_search_serves_several_loops() -> None:
    search = local(None)
    assert asyncio.run(search("reflection")) == asyncio.run(search("reflection"))


async def test_tool_answers_with_json_and_the_results_themselves() -> None:
    tool = search_tool(Engine())
    message = await tool.ainvoke({"name": "search", "args": {"query": "size"}, "id": "1", "type": "tool_call"})
    assert isinstance(message, ToolMessage)
    assert message.content == json.dumps(FOUND, ensure_ascii=False)
    assert message.artifact == FOUND
    assert message.status == "success"


async def test_failed_search_is_an_error_message() -> None:
    tool = search_tool(Engine(failures=1))
    message = await tool.ainvoke({"name": "search", "args": {"query": "size"}, "id": "1", "type": "tool_call"})
    assert (message.status, message.content) == ("error", "The engine is down.")


def test_tool_takes_one_string() -> None:
    tool = search_tool(Engine())
    assert tool.name == "search"
    assert {name: schema["type"] for name, schema in tool.args.items()} == {"query": "string"}


async def test_same_query_is_sent_once_in_a_run(key: str) -> None:
    engine = Engine()
    assert await cached(engine, key)("Reflection  in AI") == FOUND
    assert await cached(engine, key)(" reflection in\nai") == FOUND
    assert engine.queries == ["Reflection  in AI"]
    await cached(engine, f"{key} another run")("reflection in ai")
    assert len(engine.queries) == 2


async def test_cached_results_cannot_be_spoiled(key: str) -> None:
    search = cached(Engine(), key)
    (await search("q"))[0]["title"] = "spoilt"
    assert await search("q") == FOUND


async def test_same_query_asked_at_once_is_sent_once(key: str) -> None:
    engine = Engine(waits=True)
    asking = asyncio.gather(*(cached(engine, key)("q") for _ in range(50)))
    await settle()
    engine.gate.set()
    assert await asking == [FOUND] * 50
    assert engine.queries == ["q"]


async def test_failure_reaches_everyone_and_is_not_remembered(key: str) -> None:
    engine = Engine(failures=1, waits=True)
    search = cached(engine, key)
    asking = asyncio.gather(search("q"), search("q"), return_exceptions=True)
    await settle()
    engine.gate.set()
    assert [str(error) for error in await asking] == ["The engine is down."] * 2
    assert await search("q") == FOUND
    assert len(engine.queries) == 2


async def test_cancelling_one_waiter_does_not_hurt_the_other(key: str) -> None:
    engine = Engine(waits=True)
    first, second = (asyncio.create_task(cached(engine, key)("q")) for _ in range(2))
    await settle()
    first.cancel()
    await settle()
    assert first.cancelled()
    engine.gate.set()
    assert await second == FOUND
    assert (engine.queries, engine.cancelled) == (["q"], 0)


async def test_request_ends_with_its_last_waiter(key: str) -> None:
    engine = Engine(waits=True)
    waiting = [asyncio.create_task(cached(engine, key)("q")) for _ in range(2)]
    await settle()
    for task in waiting:
        task.cancel()
    await settle()
    assert engine.cancelled == 1
    engine.gate.set()
    assert await cached(engine, key)("q") == FOUND


def test_cache_serves_several_loops(key: str) -> None:
    engine = Engine(waits=True)

    async def give_up() -> None:
        async with asyncio.timeout(0):
            await cached(engine, key)("q")

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    engine.waits = False
    assert [asyncio.run(_ask(engine, key)) for _ in range(2)] == [FOUND, FOUND]
    assert len(engine.queries) <= 2


async def _ask(engine: Engine, key: str) -> list[SearchResult]:
    return await cached(engine, key)("q")


async def test_oldest_run_is_forgotten(key: str) -> None:
    engine = Engine()
    await cached(engine, key)("q")
    for i in range(MAX_CACHED_RUNS):
        cached(engine, f"{key} {i}")
    await cached(engine, key)("q")
    assert len(engine.queries) == 2
