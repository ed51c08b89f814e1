"""Live Wikipedia as a docstore, over the MediaWiki API that every language's edition has.

WIKIPEDIA_URL replaces the address, for another language or a mirror; the usual proxy variables hold.
"""

import asyncio
import os

import httpx
from pydantic import BaseModel

from reflective_agents.environments.docstore import MAX_SIMILAR, Article
from reflective_agents.state.errors import SearchFailed
from reflective_agents.state.json_types import JsonObject
from reflective_agents.web_search.client import client

ADDRESS = "https://en.wikipedia.org/w/api.php"
USER_AGENT = "reflective-agents/0.1 (agents that answer questions with articles)"
"""The user agent of the requests. Wikipedia asks that it also names a contact for the operator."""
MAX_CACHED = 256
"""Most titles whose articles are cached, so that a Lookup needs no request; the oldest are dropped first."""

_MAX_CHARACTERS = 250  # of a title or a search


class _Page(BaseModel):
    title: str
    extract: str = ""
    missing: bool = False
    invalid: bool = False
    pageprops: JsonObject = {}


class _Hit(BaseModel):
    title: str


class _Query(BaseModel):
    pages: list[_Page] = []
    search: list[_Hit] = []


class _Fault(BaseModel):
    info: str


class _Reply(BaseModel):
    query: _Query | None = None
    error: _Fault | None = None


class Wikipedia:
    """The articles of Wikipedia. May be used from any event loop."""

    def __init__(self, url: str | None = None, *, user_agent: str = USER_AGENT, timeout: float = 20.0) -> None:
        """Choose the API and its settings; nothing is sent yet.

        Args:
            url: address of the API; None for WIKIPEDIA_URL, and where that is not set, the English Wikipedia.
            user_agent: user agent of the requests.
            timeout: seconds that one request may take, above 0.
        """
        self._url = url or os.environ.get("WIKIPEDIA_URL", "").strip() or ADDRESS
        self._user_agent, self._timeout = user_agent, timeout
        self._cache: dict[str, Article] = {}

    async def article(self, title: str) -> Article | None:
        """Return the article of this title, or the one it redirects to; None also for a list of meanings.

        Raises:
            SearchFailed: if Wikipedia cannot be reached, refuses, or sends nonsense.
        """
        title = _sendable(title.replace("|", " "))  # a bar would separate several titles
        if cached := self._cache.get(title):
            return cached
        query = await self._ask(
            prop="extracts|pageprops", ppprop="disambiguation", explaintext="1", redirects="1", titles=title
        )
        if not query.pages:
            return None
        page = query.pages[0]
        if page.missing or page.invalid or "disambiguation" in page.pageprops:
            return None
        article = Article(page.title, _text(page.extract))
        for key in (title, page.title):
            # Taken out first, so that it moves to the end: a dict keeps the place of a key that it has.
            self._cache.pop(key, None)
            self._cache[key] = article
        for oldest in list(self._cache)[:-MAX_CACHED]:
            self._cache.pop(oldest, None)
        return article

    async def similar(self, query: str) -> list[str]:
        """Return the titles that Wikipedia's search finds.

        Raises:
            SearchFailed: as for `article`.
        """
        found = await self._ask(list="search", srprop="", srlimit=str(MAX_SIMILAR), srsearch=_sendable(query))
        return [hit.title for hit in found.search][:MAX_SIMILAR]

    async def _ask(self, **parameters: str) -> _Query:
        common = {"action": "query", "format": "json", "formatversion": "2"}
        headers = {"User-Agent": self._user_agent}
        try:
            async with asyncio.timeout(self._timeout), await client(self._url, headers=headers, timeout=None) as http:
                response = await http.get(self._url, params=common | parameters)
            reply = _Reply.model_validate_json(response.raise_for_status().content)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise SearchFailed(self._explain(error)) from error
        if reply.error:
            raise SearchFailed(f"Wikipedia refuses: {' '.join(reply.error.info.split())[:200]}")
        return reply.query or _Query()

    def _explain(self, error: Exception) -> str:
        match error:
            case TimeoutError():
                return f"Wikipedia did not answer within {self._timeout:g} seconds."
            case httpx.HTTPStatusError():
                return f"Wikipedia failed (HTTP {error.response.status_code})."
            case ValueError():
                return "Wikipedia's reply could not be read."
            case httpx.InvalidURL() | httpx.UnsupportedProtocol():
                return f"WIKIPEDIA_URL is no valid address: give one such as {ADDRESS}."
            case _:
                return f"The connection to Wikipedia failed ({type(error).__name__})."


def _sendable(text: str) -> str:
    """Return a text of bounded length, without the halves of surrogate pairs that models write at times."""
    return text.encode("utf-8", "ignore").decode()[:_MAX_CHARACTERS]


def _text(extract: str) -> str:
    """Return an extract without its headings."""
    return "\n".join(line for line in extract.split("\n") if not line.startswith("=="))
