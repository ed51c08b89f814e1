"""Search engines of one's own: a function, or a retriever of LangChain's."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.errors import GraphBubbleUp

from reflective_agents.state.errors import SearchFailed
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.secrets import redacted
from reflective_agents.web_search.results import SearchResult

Result: TypeAlias = Document | str | JsonMapping
Function: TypeAlias = Callable[[str], Iterable[Result] | Awaitable[Iterable[Result]]]
OwnSearch = Function | Runnable[str, list[Document]]
"""`query -> results`, at once or awaited, or a retriever. A result is a `Document`, a text, or a mapping with
`content` (or `snippet`, `text`), `url` (or `link`, `source`) and `title`."""

_CONTENT = ("content", "snippet", "text", "body", "page_content")
_URL = ("url", "link", "source", "href", "Entry ID")
_TITLE = ("title", "Title")
"""What results, among them those of langchain-community's retrievers, call the same."""


def name_of(engine: OwnSearch) -> str:
    """Return what an engine is called in events."""
    return str(getattr(engine, "__name__", None) or type(engine).__name__)


async def search_own(engine: OwnSearch, query: str, *, max_results: int) -> list[SearchResult]:
    """Ask an engine of one's own. A function that does not await is run in a thread.

    Raises:
        SearchFailed: if it fails, or finds what is no result.
    """
    try:
        results = await _ask(engine, query)
    except (SearchFailed, GraphBubbleUp):  # the latter is how `interrupt()` pauses a run
        raise
    except Exception as error:  # the engine is foreign code, which may raise anything: an observation for the model
        raise SearchFailed(f"{name_of(engine)} failed: {type(error).__name__}: {redacted(str(error))}") from error
    if not isinstance(results, Iterable) or isinstance(results, str | Mapping):
        raise SearchFailed(f"{name_of(engine)} returned {type(results).__name__}, not a list of results")
    sources = [_source(result, name_of(engine)) for result in results]
    return [source for source in sources if source["content"]][:max_results]


async def _ask(engine: OwnSearch, query: str) -> Iterable[Result]:
    if isinstance(engine, Runnable):
        return await engine.ainvoke(query)
    # An object with an asynchronous `__call__` is no coroutine function itself; a partial of one is.
    awaits = inspect.iscoroutinefunction(engine) or inspect.iscoroutinefunction(getattr(engine, "__call__", None))  # noqa: B004
    results = engine(query) if awaits else await asyncio.to_thread(_call, engine, query)
    if isinstance(results, Awaitable):
        return await results
    return results


def _call(engine: Function, query: str) -> Iterable[Result] | Awaitable[Iterable[Result]]:
    """Call a function; what a generator finds is read here, since that is where it waits and may fail."""
    results = engine(query)
    return [*results] if isinstance(results, Iterator) else results


def _source(result: Result, engine: str) -> SearchResult:
    """Read a result; one without an address gets one that names its engine and content, so that it can be cited."""
    if isinstance(result, Document):
        data: JsonMapping = {**result.metadata, "content": result.page_content}
    elif isinstance(result, Mapping):
        data = result
    else:
        data = {"content": result}
    content, url = _first(data, _CONTENT), _first(data, _URL)
    if not url:
        # The same content has the same address in each run, so that it counts as one source.
        digest = blake2b(content.encode(errors="surrogatepass"), digest_size=6).hexdigest()
        url = f"{engine}:{digest}"
    return SearchResult(title=_first(data, _TITLE) or url, url=url, content=content)


def _first(data: JsonMapping, names: Iterable[str]) -> str:
    for name in names:
        if data.get(name):
            return str(data[name]).strip()
    return ""
