"""A local HTTP server that answers searches as Tavily does.

async with TavilyServer({"capital of France": [{"title": "Paris", "url": "...", "content": "..."}]}) as server:
    await AsyncTavilyClient("tvly-test", api_base_url=server.url).search("capital of France")
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from aiohttp import web

from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.testing.serve import LocalServer, cut_in_half, reset

Result: TypeAlias = JsonMapping
Results: TypeAlias = Callable[[str], Sequence[Result]] | Mapping[str, Sequence[Result]] | Sequence[Result]
"""What is found: for each query, by a function or a mapping; or the same for every query."""

SearchFault: TypeAlias = Literal["401", "429", "432", "500", "timeout", "reset", "truncated_json", "no_results"]
SearchFaults: TypeAlias = Callable[[str, int], SearchFault | None]
"""Which fault a search shows: a function of its query and its number, from 0, in order of arrival."""

DEFAULT_RESULTS: list[Result] = [
    {"title": "First result", "url": "https://example.com/first", "content": "What the first page says."},
    {"title": "Second result", "url": "https://example.com/second", "content": "What the second page says."},
]

_STATUS_ERRORS = {
    "401": "Unauthorized: missing or invalid API key.",
    "429": "Your request has been blocked due to excessive requests.",
    "432": "This request exceeds your plan's set usage limit.",
    "500": "Internal Server Error",
}


class TavilyServer(LocalServer):
    """Answers POST /search; a search without a bearer key is refused."""

    def __init__(
        self,
        results: Results = DEFAULT_RESULTS,
        *,
        fault: SearchFault | SearchFaults | None = None,
        latency: float = 0.0,
        port: int = 0,
    ) -> None:
        """Describe the server; it listens once the `with` block is entered.

        Args:
            results: what is found. Results need title, url and content; a query that a mapping lacks finds nothing.
            fault: the fault that every search shows, or a function that says it for each.
            latency: seconds before each answer.
            port: 0 takes any that is free.
        """
        super().__init__(port)
        self.requests: list[JsonObject] = []
        """The bodies of all searches, in order of arrival."""
        self.keys: list[str] = []
        """The bearer key of each search; empty where none was sent."""
        self._results, self._fault, self._latency = results, fault, latency

    @property
    def url(self) -> str:
        """What the Tavily clients take as api_base_url."""
        return self.address

    def routes(self) -> list[web.RouteDef]:
        """List the one path served."""
        return [web.post("/search", self._search)]

    async def _search(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        key = http.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        fault = self._fault(body["query"], len(self.requests)) if callable(self._fault) else self._fault
        self.requests.append(body)
        self.keys.append(key)
        await asyncio.sleep(self._latency)
        if fault == "timeout":
            return await self.hang(http)
        if fault == "reset":
            return reset(http)
        if not key or fault in _STATUS_ERRORS:
            return _refuse(fault if key and fault else "401")
        text = json.dumps(_found(body, [] if fault == "no_results" else self._find(body["query"])))
        return cut_in_half(text) if fault == "truncated_json" else web.json_response(text=text)

    def _find(self, query: str) -> Sequence[Result]:
        if callable(self._results):
            return self._results(query)
        return self._results.get(query, []) if isinstance(self._results, Mapping) else self._results


def _refuse(status: str) -> web.Response:
    return web.json_response({"detail": {"error": _STATUS_ERRORS[status]}}, status=int(status))


def _found(body: JsonObject, results: Sequence[Result]) -> JsonObject:
    """Build the answer to a web search: at most `max_results` results (5 if not given), ranked in their order."""
    shown = results[: body.get("max_results", 5)]
    ranked = [{"score": 1 / rank, "raw_content": None, **result} for rank, result in enumerate(shown, 1)]
    about = {"query": body["query"], "follow_up_questions": None, "answer": None, "images": []}
    return {**about, "results": ranked, "response_time": 0.0, "request_id": "local"}
