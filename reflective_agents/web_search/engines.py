"""The one door to search: which engine, asked how, cached within a run, and the tool that a model calls."""

import asyncio
import json
import os
import sqlite3
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Literal, Protocol, get_args

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel

from reflective_agents.state.errors import BadCorpus, Misuse, SearchFailed
from reflective_agents.state.forks import after_fork
from reflective_agents.text.clean import clean_data
from reflective_agents.text.normal import folded
from reflective_agents.web_search.corpus import open_corpus
from reflective_agents.web_search.own import OwnSearch, search_own
from reflective_agents.web_search.results import SearchResult
from reflective_agents.web_search.services import SERVICES, check_service, search_service
from reflective_agents.web_search.tavily import search_tavily, tavily_key

SearchKind = Literal["tavily", "local", "none", "searxng", "duckduckgo", "arxiv", "pubmed", "wikipedia"]
"""Which search an agent may use: the web, a folder of documents, nothing, or a service that needs no key."""

MAX_CACHED_RUNS = 64
"""Runs of which the results are remembered; the one that searched least recently is forgotten first."""


class Search(Protocol):
    """A search engine."""

    async def __call__(self, query: str) -> list[SearchResult]:
        """Return what was found, the best first and never empty, or raise `SearchFailed`."""
        ...


def choose_search(kind: str | OwnSearch | None) -> tuple[SearchKind | OwnSearch, str]:
    """Decide which search is used, and say why.

    Args:
        kind: The name of an engine, a search of one's own, or None for what the environment offers.

    Returns:
        The kind, and the reason in a few words.

    Raises:
        MissingKey: if Tavily is asked for without a key, or SearxNG without an address.
        Misuse: if there is no such kind, or it is not installed.
    """
    if kind is not None and not isinstance(kind, str):
        return kind, "as given"
    if kind is None:
        has_key = bool(os.environ.get("TAVILY_API_KEY", "").strip())
        return ("tavily", "TAVILY_API_KEY is set") if has_key else ("local", "TAVILY_API_KEY is not set")
    for name in get_args(SearchKind):
        if kind == name:
            if kind == "tavily":
                tavily_key()
            if kind in SERVICES:
                check_service(kind)
            return name, "asked for"
    raise Misuse(f"Unknown search {kind!r}: choose one of {', '.join(get_args(SearchKind))}.")


def make_search(
    kind: SearchKind | OwnSearch, corpus: str | None, *, timeout: float = 20.0, max_results: int = 5
) -> Search | None:
    """Make the search of the kind chosen. Touches neither disk nor network.

    Args:
        kind: see `choose_search`.
        corpus: folder of the local search; None for the articles that come with this project.
        timeout: seconds that one search may take, above 0.
        max_results: how many results at most, from 1 to 20.

    Returns:
        The search, usable from any event loop; None for the kind "none".

    Raises:
        MissingKey: if Tavily is asked for without a key.
    """
    if kind == "none":
        return None
    if kind == "tavily":
        tavily_key()

    async def search(query: str) -> list[SearchResult]:
        if not query.strip():
            raise SearchFailed("The query is empty: say what to search for.")
        try:
            async with asyncio.timeout(timeout):
                if not isinstance(kind, str):
                    results = await search_own(kind, query, max_results=max_results)
                elif kind == "tavily":
                    results = await search_tavily(query, max_results=max_results)
                elif kind in SERVICES:
                    results = await search_service(kind, query, max_results=max_results)
                else:
                    results = await _search_folder(corpus, query, max_results)
        except TimeoutError as error:
            raise SearchFailed(f"The search took longer than {timeout:g} seconds and was given up.") from error
        if not results:
            raise SearchFailed("Nothing was found: try other or fewer words.")
        return results

    return search


@cache
def _threads() -> ThreadPoolExecutor:
    """Return a thread pool of its own: searches wait while a large folder is read, and must not block other work."""
    return ThreadPoolExecutor(max_workers=4, thread_name_prefix="corpus")


after_fork(_threads.cache_clear)


async def _search_folder(folder: str | None, query: str, max_results: int) -> list[SearchResult]:
    def work() -> list[SearchResult]:
        return open_corpus(folder).search(query, max_results)

    try:
        return await asyncio.get_running_loop().run_in_executor(_threads(), work)
    except BadCorpus as error:
        raise SearchFailed(str(error)) from error
    except (sqlite3.Error, OSError) as error:
        raise SearchFailed(f"The index of the documents could not be used ({error}).") from error


class SearchArguments(BaseModel):
    """Search for sources."""

    query: str


def search_tool(search: Search) -> BaseTool:
    """Wrap a search as the tool `search`, which models call with one argument, `query`.

    The tool message's content is a JSON array of results, its artifact the list itself. A failed search is a tool
    message with status "error" that says what happened.
    """

    async def call(query: str) -> tuple[str, list[SearchResult]]:
        try:
            results = await search(query)
        except SearchFailed as error:
            raise ToolException(str(error)) from error
        return json.dumps(results, ensure_ascii=False), results

    return _unbound_search_tool().model_copy(update={"coroutine": call})


@cache
def _unbound_search_tool() -> StructuredTool:
    """Return the tool without a search, cached: its copies share the schema that LangChain makes of it for models."""

    async def call(query: str) -> tuple[str, list[SearchResult]]:
        raise NotImplementedError

    tool = StructuredTool.from_function(
        coroutine=call,
        name="search",
        args_schema=SearchArguments,  # reading them off the function takes longer than most steps
        description="Search for sources. Returns a JSON array of results, each with title, url and content.",
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
    assert tool.tool_call_schema  # made now, so that each copy has it
    return tool


def cached(search: Search, key: str) -> Search:
    """Remember what `search` finds within one run, but no failures. A query asked twice at once is sent once.

    Args:
        search: the search to ask.
        key: identifies the run. Searches under one key share their results, whichever object does the asking.

    Returns:
        The search, with a memory. Queries that differ in case and blanks only count as the same.
    """
    run = _run(key)

    async def ask(query: str) -> list[SearchResult]:
        normalised = folded(query)
        if normalised not in run.results:
            await _join(search, run, query, normalised)
        # Copies: whoever numbers or shortens results must not change those of others.
        return [result.copy() for result in run.results[normalised]]

    return ask


class _Flight:
    """A request under way, in the event loop that sent it, and how many wait for it."""

    def __init__(self, request: asyncio.Task[list[SearchResult]]) -> None:
        self.request = request
        self.waiting = 0


class _Run:
    """What one run has found, and what it is asking, by normalised query."""

    def __init__(self) -> None:
        self.results: dict[str, list[SearchResult]] = {}
        self.flights: dict[tuple[asyncio.AbstractEventLoop, str], _Flight] = {}


_runs: OrderedDict[str, _Run] = OrderedDict()
_runs_lock = threading.Lock()


def _unlock() -> None:
    global _runs_lock
    _runs_lock = threading.Lock()


after_fork(_unlock)


def _run(key: str) -> _Run:
    with _runs_lock:
        run = _runs.setdefault(key, _Run())
        _runs.move_to_end(key)
        if len(_runs) > MAX_CACHED_RUNS:
            _runs.popitem(last=False)
        return run


async def _join(search: Search, run: _Run, query: str, normalised: str) -> None:
    """Wait for the request under way for this query, or send it. It is given up once nobody waits any more."""
    # A task belongs to its loop: a run that asks from two loops at once sends one request in each.
    key = (asyncio.get_running_loop(), normalised)
    flight = run.flights.get(key)
    if flight is None:
        flight = run.flights[key] = _Flight(asyncio.create_task(search(query)))
    flight.waiting += 1
    try:
        # Shielded: who is cancelled does not take the request from those who wait for it as well.
        run.results[normalised] = clean_data(await asyncio.shield(flight.request))
    finally:
        flight.waiting -= 1
        if not flight.waiting:
            flight.request.cancel()
            run.flights.pop(key, None)
