"""Search services that need no key, by name, each asked in the way that is likely to last.

SearxNG, Wikipedia and PubMed are asked over HTTP, DuckDuckGo and arXiv by the libraries made for them, which come with
the extra `community`. langchain-community, which has all five, is archived by its makers, and its search of arXiv no
longer works; a retriever of its own is a search like any other (see `own`).
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial, update_wrapper
from importlib import import_module
from types import ModuleType
from xml.etree import ElementTree

import httpx

from reflective_agents.state.errors import MissingKey, SearchFailed
from reflective_agents.state.extras import need
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.web_search.client import client
from reflective_agents.web_search.own import search_own
from reflective_agents.web_search.results import SearchResult

LIBRARIES = {"duckduckgo": "ddgs", "arxiv": "arxiv"}
"""The libraries that services are asked with, by the name of the service."""
WIKIPEDIA = "https://en.wikipedia.org"
PUBMED = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
_USER_AGENT = "reflective-agents/0.1 (agents that look things up)"

Results = Iterable[JsonMapping]


def check_service(name: str) -> None:
    """Refuse a service that cannot be asked.

    Raises:
        Misuse: if its library is not installed.
        MissingKey: if SEARXNG_URL does not say where SearxNG is.
    """
    if name in LIBRARIES:
        _library(name)
    if name == "searxng":
        _searxng_address()


async def search_service(name: str, query: str, *, max_results: int) -> list[SearchResult]:
    """Ask one of the services.

    Raises:
        SearchFailed: if it fails.
    """
    function: Callable[..., Results | Awaitable[Results]] = SERVICES[name]
    # With the name of the function, by which errors and addresses call the engine.
    engine = update_wrapper(partial(function, max_results=max_results), function)
    return await search_own(engine, query, max_results=max_results)


async def searxng(query: str, max_results: int) -> Results:
    """Ask the SearxNG that SEARXNG_URL names."""
    response = await _get("searxng", _searxng_address(), q=query, format="json")
    # Some of SearxNG's engines answer with a text alone, such as a calculation.
    return [result for result in response.json()["results"] if result.get("url")]


def duckduckgo(query: str, max_results: int) -> Results:
    """Ask DuckDuckGo."""
    results: list[JsonMapping] = _library("duckduckgo").DDGS().text(query, max_results=max_results)
    return results


def arxiv(query: str, max_results: int) -> Results:
    """Ask arXiv for papers; their content is the abstract."""
    library = _library("arxiv")
    papers = library.Client(page_size=max_results).results(library.Search(query, max_results=max_results))
    return [{"title": paper.title, "url": paper.entry_id, "content": paper.summary} for paper in papers]


async def pubmed(query: str, max_results: int) -> Results:
    """Ask PubMed for articles; their content is the abstract."""
    search = {"db": "pubmed", "term": query, "retmode": "json", "retmax": str(max_results), "sort": "relevance"}
    ids = (await _get("pubmed", f"{PUBMED}/esearch.fcgi", **search)).json()["esearchresult"]["idlist"]
    if not ids:
        return []
    response = await _get("pubmed", f"{PUBMED}/efetch.fcgi", db="pubmed", id=",".join(ids), retmode="xml")
    return list(map(_article, ElementTree.fromstring(response.content).iter("PubmedArticle")))


def _article(article: ElementTree.Element) -> JsonMapping:
    return {
        "title": _text(article.find(".//ArticleTitle")),
        "url": f"https://pubmed.ncbi.nlm.nih.gov/{article.findtext('.//PMID')}/",
        "content": "\n".join(map(_text, article.iterfind(".//AbstractText"))),
    }


async def wikipedia(query: str, max_results: int) -> Results:
    """Ask the English Wikipedia for articles; their content is the introduction."""
    search = {"action": "query", "generator": "search", "gsrsearch": query, "gsrlimit": str(max_results)}
    shown = {"prop": "extracts|info", "inprop": "url", "exintro": "1", "explaintext": "1", "exlimit": "max"}
    form = {"format": "json", "formatversion": "2"}
    response = await _get("wikipedia", f"{WIKIPEDIA}/w/api.php", **search, **shown, **form)
    # The API lists pages by their number; `index` is their rank. Without a hit there is no `query` at all.
    pages = sorted(response.json().get("query", {}).get("pages", []), key=lambda page: page["index"])
    return [{"title": page["title"], "url": page["fullurl"], "content": page.get("extract", "")} for page in pages]


async def _get(name: str, url: str, **parameters: str) -> httpx.Response:
    """Send a request; what bounds its time is the search. What failed is told without the address."""
    async with await client(url, headers={"User-Agent": _USER_AGENT}, timeout=None) as http:
        response = await http.get(url, params=parameters)
    if not response.is_success:
        raise SearchFailed(f"{name} failed (HTTP {response.status_code}).")
    return response


def _text(element: ElementTree.Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def _searxng_address() -> str:
    address = os.environ.get("SEARXNG_URL", "").strip()
    if not address:
        raise MissingKey("searxng needs SEARXNG_URL in the environment: the address of a SearxNG that answers in JSON")
    return address


def _library(name: str) -> ModuleType:
    need(LIBRARIES[name], extra="community", purpose=f"the search {name}")
    return import_module(LIBRARIES[name])


SERVICES: dict[str, Callable[[str, int], Results] | Callable[[str, int], Awaitable[Results]]] = {
    "searxng": searxng,
    "duckduckgo": duckduckgo,
    "arxiv": arxiv,
    "pubmed": pubmed,
    "wikipedia": wikipedia,
}
UNTESTED = tuple(name for name in SERVICES if name != "searxng")
"""Those in the internet, which the tests ask only as far as a machine without one can."""
