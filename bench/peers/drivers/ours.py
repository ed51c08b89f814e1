"""This project's LATS: 10 expansions of 5 candidates."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from reflective_agents.graphs.lats import graph

LATS: dict[str, Any] = {"model": "openai:bench", "search": "none", "n": 5, "max_expansions": 10}


class Search:
    """`graphs.lats`; the setting is JSON of further settings of its context."""

    def __init__(self, setting: str) -> None:
        self._context = {**LATS, **json.loads(setting)}
        self._runner = asyncio.Runner()

    def run(self, question: str) -> None:
        """Search."""
        self._state = self._runner.run(self._search(question))
        self.calls = self._state["usage"]["model_calls"]

    def root(self) -> SimpleNamespace | None:
        """Return the root: the first answer, below which all others lie."""
        roots = self._below(None)
        return roots[0] if roots else None

    def _below(self, parent: str | None) -> list[SimpleNamespace]:
        tree = self._state["tree"]
        return [SimpleNamespace(children=self._below(name)) for name in tree if tree[name]["parent_id"] == parent]

    async def _search(self, question: str) -> dict[str, Any]:
        return await graph.ainvoke({"messages": [("user", question)]}, context=self._context)
