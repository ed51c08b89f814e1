"""Sends the very requests of a run once more through the bare client, in the same waves."""

import asyncio
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from reflective_agents.models.providers import get_model

Call = tuple[list[BaseMessage], dict[str, Any]]
Waves = list[list[Call]]


class Recorder(AsyncCallbackHandler):
    """Notes each request of a run, wave by wave: a call belongs to the wave after the last one of which a call has been
    answered. With calls that all take as long, that is the longest chain of calls that wait for each other."""

    def __init__(self) -> None:
        self.waves: Waves = []
        self._wave: dict[UUID, int] = {}
        self._answered = 0

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Note a request."""
        sent = kwargs["invocation_params"]
        self._wave[run_id] = self._answered + 1
        if len(self.waves) == self._answered:
            self.waves.append([])
        options = {key: sent[key] for key in ("tools", "tool_choice", "n") if key in sent}
        self.waves[self._answered].append((messages[0], options))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that it has been answered."""
        self._answered = max(self._answered, self._wave[run_id])


async def replay(model: str, waves: Waves) -> None:
    """Send the requests of each wave at once, one wave after the other."""
    chat = get_model(model)
    for wave in waves:
        await asyncio.gather(*(chat.ainvoke(messages, **options) for messages, options in wave))
