"""LlamaIndex's LATS agent: 10 rollouts of 5 candidates."""

import asyncio
import os
from importlib import import_module
from typing import Any


class Search:
    """`LATSAgentWorker` as an agent, without tools; the setting is empty."""

    def __init__(self, setting: str) -> None:
        client = import_module("llama_index.llms.openai").OpenAI
        model = client(model="gpt-4o-mini", api_base=os.environ["OPENAI_BASE_URL"])  # it takes known names only
        make = import_module("llama_index.agent.lats").LATSAgentWorker
        self._worker = make(tools=[], llm=model, num_expansions=5, max_rollouts=10)
        self._runner = asyncio.Runner()

    def run(self, question: str) -> None:
        """Search."""
        self._agent = self._worker.as_agent()
        self._runner.run(self._search(question))

    def root(self) -> Any:
        """Return the root: the question."""
        tasks = self._agent.list_tasks()
        return tasks[0].extra_state.get("root_node") if tasks else None

    async def _search(self, question: str) -> None:
        await self._agent.achat(question)
