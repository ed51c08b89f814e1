"""Sends the very requests of a run once more through the bare client, in the same waves."""

import asyncio
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from models.providers import get_model

Call = tuple[list[BaseMessage], dict[str, Any]]
Waves = list[list[Call]]


class Recorder(AsyncCallbackHandler):
    """Notes each request of a run, wave by wave: a wave begins with a call that is sent while none is in flight."""

    def __init__(self) -> None:
        self.waves: Waves = []
        self._in_flight: set[UUID] = set()

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Note a request."""
        sent = kwargs["invocation_params"]
        if not self._in_flight:
            self.waves.append([])
        self._in_flight.add(run_id)
        self.waves[-1].append((messages[0], {key: sent[key] for key in ("tools", "tool_choice", "n") if key in sent}))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that it has been answered."""
        self._in_flight.discard(run_id)


async def replay(model: str, waves: Waves) -> None:
    """Send the requests of each wave at once, one wave after the other."""
    chat = get_model(model)
    for wave in waves:
        await asyncio.gather(*(chat.ainvoke(messages, **options) for messages, options in wave))
