"""Web search through Tavily's own client. The key stands in TAVILY_API_KEY, and nowhere else."""

import asyncio
import os
from importlib import import_module

import httpx
from pydantic import BaseModel

from reflective_agents.state.errors import MissingKey, SearchFailed
from reflective_agents.state.extras import need
from reflective_agents.state.secrets import redacted
from reflective_agents.web_search.client import client
from reflective_agents.web_search.results import SearchResult


class _Hit(BaseModel):
    title: str | None = None
    url: str
    content: str | None = None


class _Reply(BaseModel):
    results: list[_Hit]


def tavily_key() -> str:
    """Return the key from the environment.

    Raises:
        MissingKey: if TAVILY_API_KEY is not set, or empty.
        Misuse: if the library of Tavily is not installed.
    """
    key = os.environ.get("TAVILY_API_KEY", "").strip()
    if not key:
        raise MissingKey("Tavily search needs a key: set TAVILY_API_KEY, or choose the local search.")
    need("tavily", extra="tavily", purpose="the search tavily")
    return key


async def search_tavily(query: str, *, max_results: int) -> list[SearchResult]:
    """Search the web. The caller bounds the time: the client itself gives up only after its longest, 120 seconds.

    TAVILY_BASE_URL replaces the address of the service; the usual proxy variables hold.

    Args:
        query: what to look for.
        max_results: how many results at most, from 1 to 20.

    Returns:
        The results that have a text, the best first; may be empty.

    Raises:
        MissingKey: if there is no key.
        Misuse: if the library of Tavily is not installed.
        SearchFailed: if the service refuses, fails, cannot be reached or sends nonsense.
    """
    key = tavily_key()
    address = os.environ.get("TAVILY_BASE_URL", "").strip() or "https://api.tavily.com"
    await asyncio.to_thread(import_module, "tavily")  # loads a tokenizer, too, and most runs search elsewhere
    from tavily import AsyncTavilyClient

    try:
        async with await client(base_url=address) as http:
            tavily = AsyncTavilyClient(key, client=http)
            reply = _Reply.model_validate(await tavily.search(query, max_results=max_results, timeout=120))
    except (ValueError, AttributeError, TypeError) as error:  # the client reads replies unchecked
        raise SearchFailed("Tavily's reply could not be read.") from error
    except _faults() as error:
        raise SearchFailed(_explain(error)) from error
    results: list[SearchResult] = []
    for hit in reply.results[:max_results]:
        content = (hit.content or "").strip()
        if content:
            results.append(SearchResult(title=hit.title or hit.url, url=hit.url, content=content))
    return results


def _faults() -> tuple[type[Exception], ...]:
    from tavily import errors

    refusals = (errors.InvalidAPIKeyError, errors.UsageLimitExceededError, errors.ForbiddenError)
    return (*refusals, errors.BadRequestError, errors.TimeoutError, httpx.HTTPError, httpx.InvalidURL)


def _explain(error: Exception) -> str:
    """Say on one line what went wrong, without the request's address or key."""
    from tavily import errors

    match error:
        case errors.InvalidAPIKeyError():
            return "Tavily does not accept the key in TAVILY_API_KEY (401)."
        case errors.UsageLimitExceededError():
            return "Tavily refuses: too many requests (429)."
        case errors.ForbiddenError():
            return f"Tavily refuses: the plan's limit is reached or the request is forbidden.{_detail(error)}"
        case errors.BadRequestError():
            return f"Tavily does not accept the request (400).{_detail(error)}"
        case errors.TimeoutError() | httpx.TimeoutException():
            return "Tavily did not answer in time."
        case httpx.HTTPStatusError():
            return f"Tavily failed (HTTP {error.response.status_code})."
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return "TAVILY_BASE_URL is no valid address: give one such as https://api.tavily.com."
        case _:
            return f"The connection to Tavily failed ({type(error).__name__})."


def _detail(error: Exception) -> str:
    text = redacted(" ".join(str(error).split()))[:200]
    return f" It says: {text}" if text else ""
