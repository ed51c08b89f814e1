"""A local HTTP server that answers searches as SearxNG does, in JSON."""

from collections.abc import Sequence

from aiohttp import web

from reflective_agents.state.json_types import JsonMapping
from reflective_agents.testing.serve import LocalServer


class SearxNGServer(LocalServer):
    """Answers GET / with the results for the query `q`; a format other than JSON is forbidden, as on most servers."""

    def __init__(self, results: Sequence[JsonMapping], *, status: int = 200, port: int = 0) -> None:
        """Describe the server; it listens once the `with` block is entered.

        Args:
            results: what every query finds, each with title, url and content.
            status: the HTTP status of every answer.
            port: 0 takes any that is free.
        """
        super().__init__(port)
        self.queries: list[str] = []
        """All queries, in order of arrival."""
        self._results, self._status = results, status

    def routes(self) -> list[web.RouteDef]:
        """List the one path served."""
        return [web.get("/", self._search)]

    async def _search(self, request: web.Request) -> web.Response:
        self.queries.append(request.query["q"])
        if self._status != 200 or request.query.get("format") != "json":
            return web.Response(status=403 if self._status == 200 else self._status)
        results = [{"engines": ["local"], "category": "general", "content": "", **result} for result in self._results]
        return web.json_response({"query": request.query["q"], "results": results, "answers": [], "suggestions": []})
