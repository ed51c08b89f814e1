"""Replies that were paid for once: kept by the request and by the number of the sample.

The first time that a task sends a request, it gets what the first such request was answered, the second time what the
second one was, and so on: samples stay different, and an evaluation that is run again pays for what is new only.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.cache.base import BaseCache, FullKey
from langgraph.cache.sqlite import SqliteCache

from reflective_agents.models.ways import address_of
from reflective_agents.state.json_types import JsonObject

Ask = Callable[[], Awaitable[list[AIMessage]]]
Hear = Callable[[str], Awaitable[None]]
Cache = BaseCache[list[AIMessage]]
_SPACE = ("replies",)


class Replies:
    """What one task has asked. `hits` counts the requests that the cache has answered."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._asked: Counter[str] = Counter()
        self.hits = 0

    async def get(self, request: str, ask: Ask, hear: Hear | None) -> list[AIMessage]:
        """Return the replies to a request: those that are kept, else those of the model, which are kept from now on."""
        number = self._asked[request]
        self._asked[request] += 1
        key: FullKey = (_SPACE, f"{request}-{number}")
        if kept := (await self._cache.aget([key])).get(key):
            self.hits += 1
            if hear:
                await hear(kept[0].text)
            return kept
        replies = await ask()
        await self._cache.aset({key: (replies, None)})
        return replies


_replies: ContextVar[Replies | None] = ContextVar("replies", default=None)


def open_cache(file: Path) -> Cache:
    """Open a cache; several processes may use it at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    return SqliteCache(path=str(file))


@contextmanager
def caching(cache: Cache | None) -> Iterator[Replies | None]:
    """Answer requests of the body from a cache, those of tasks that it starts included; None for no cache."""
    replies = Replies(cache) if cache is not None else None
    token = _replies.set(replies)
    try:
        yield replies
    finally:
        _replies.reset(token)


async def remembered(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    options: JsonObject,
    ask: Ask,
    hear: Hear | None = None,
) -> list[AIMessage]:
    """Return the replies to a request, from the cache where there is one that knows them.

    Args:
        base: The model.
        messages: The prompt.
        options: The options of the request.
        ask: Asks the model.
        hear: Who hears a reply that comes from the cache.
    """
    replies = _replies.get()
    return await ask() if replies is None else await replies.get(_digest(base, messages, options), ask, hear)


def _digest(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject) -> str:
    """Return what is the same for the same request only. Ids of messages differ from run to run and are left out."""
    said = [message.model_dump(exclude={"id", "response_metadata", "usage_metadata"}) for message in messages]
    asked = [type(base).__name__, address_of(base), base._identifying_params, said, options]
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
