"""Engines of langchain-community that need no key, by name; they come with the extra `community`.

langchain-community is being sunset by its makers: what works today may not be mended tomorrow. SearxNG is tested here
against a local server that speaks its protocol. The others ask services in the internet, and are untested here.
"""

import asyncio
import os
import warnings
from importlib import import_module
from types import ModuleType

from langchain_core.documents import Document

from reflective_agents.state.errors import MissingKey, Misuse
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.web_search.own import Function, search_own
from reflective_agents.web_search.results import SearchResult

ENGINES = ("searxng", "duckduckgo", "arxiv", "pubmed", "wikipedia")
UNTESTED = ENGINES[1:]
"""Those that ask a service in the internet."""
INSTALL = "install the extra: pip install 'reflective-agents[community]'"


def check_engine(name: str) -> None:
    """Refuse an engine that cannot be asked.

    Raises:
        Misuse: if langchain-community is not installed.
        MissingKey: if nobody says where SearxNG is.
    """
    _utility("searx_search")
    if name == "searxng":
        _address()


async def search_community(name: str, query: str, *, max_results: int) -> list[SearchResult]:
    """Ask one of the engines.

    Raises:
        SearchFailed: if it fails.
    """
    engine = await asyncio.to_thread(_ENGINES[name], max_results)
    engine.__name__ = name
    return await search_own(engine, query, max_results=max_results)


def searxng(max_results: int) -> Function:
    """Make a search of the SearxNG that SEARXNG_URL names."""
    wrapper = _utility("searx_search").SearxSearchWrapper(searx_host=_address())

    async def search(query: str) -> list[JsonMapping]:
        return [hit for hit in await wrapper.aresults(query, max_results) if hit.get("link")]

    return search


def duckduckgo(max_results: int) -> Function:
    """Make a search of DuckDuckGo. Untested here."""
    wrapper = _utility("duckduckgo_search").DuckDuckGoSearchAPIWrapper(max_results=max_results)
    return lambda query: wrapper.results(query, max_results)


def arxiv(max_results: int) -> Function:
    """Make a search of arXiv's summaries. Untested here."""
    wrapper = _utility("arxiv").ArxivAPIWrapper(top_k_results=max_results)
    return lambda query: [_with_url(document, "Entry ID") for document in wrapper.get_summaries_as_docs(query)]


def pubmed(max_results: int) -> Function:
    """Make a search of PubMed's abstracts. Untested here."""
    wrapper = _utility("pubmed").PubMedAPIWrapper(top_k_results=max_results)

    def search(query: str) -> list[JsonMapping]:
        return [
            {"title": hit["Title"], "url": f"https://pubmed.ncbi.nlm.nih.gov/{hit['uid']}/", "content": hit["Summary"]}
            for hit in wrapper.load(query)
        ]

    return search


def wikipedia(max_results: int) -> Function:
    """Make a search of Wikipedia's articles. Untested here."""
    wrapper = _utility("wikipedia").WikipediaAPIWrapper(top_k_results=max_results)
    return lambda query: wrapper.load(query)  # its `load` cannot be named


def _with_url(document: Document, name: str) -> JsonMapping:
    return {**document.metadata, "url": document.metadata.get(name, ""), "content": document.page_content}


def _address() -> str:
    address = os.environ.get("SEARXNG_URL", "").strip()
    if not address:
        raise MissingKey("searxng needs SEARXNG_URL in the environment: the address of a SearxNG that answers in JSON")
    return address


def _utility(name: str) -> ModuleType:
    """Load a module of langchain-community, without the warning that it is being sunset."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(f"langchain_community.utilities.{name}")
    except ModuleNotFoundError as missing:
        raise Misuse(f"that search needs langchain-community ({missing}): {INSTALL}") from missing


_ENGINES = {"searxng": searxng, "duckduckgo": duckduckgo, "arxiv": arxiv, "pubmed": pubmed, "wikipedia": wikipedia}
