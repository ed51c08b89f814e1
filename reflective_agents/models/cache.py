"""Replies that were paid for once: kept by the request and by the number of the sample.

The first time that a task sends a request, it gets what the first such request was answered, the second time what the
second one was, and so on: samples stay different, and an evaluation that is run again pays for what is new only.

A request is the same if all is the same that may change its answer: the model with its fields and its address, the
prompt, the tools, and every option. Secrets are left out. A model that cannot be told from others has no cache.
"""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.cache.base import BaseCache, FullKey
from pydantic import BaseModel, SecretBytes, SecretStr

from reflective_agents.state.errors import Misuse
from reflective_agents.state.extras import need
from reflective_agents.state.json_types import JsonObject

Cache = BaseCache[list[AIMessage]]
_SPACE = ("replies",)


class Replies:
    """What one task has asked. `hits` counts the requests that the cache has answered."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._request_counts: Counter[str] = Counter()
        self.hits = 0

    def entry(self, request: str) -> "Entry":
        """Return the entry of the next such request."""
        self._request_counts[request] += 1
        return Entry(self, (_SPACE, f"{request}-{self._request_counts[request] - 1}"))


class Entry:
    """The place of one request in the cache."""

    def __init__(self, replies: Replies, key: FullKey) -> None:
        self._replies, self._key = replies, key

    async def get(self) -> list[AIMessage] | None:
        """Return the replies to the request; None if it is new."""
        found = await self._replies.cache.aget([self._key])
        if self._key not in found:
            return None
        self._replies.hits += 1
        return found[self._key]

    async def keep(self, replies: list[AIMessage]) -> None:
        """Keep what the model has replied."""
        await self._replies.cache.aset({self._key: (replies, None)})


_replies: ContextVar[Replies | None] = ContextVar("replies", default=None)


def open_cache(file: Path) -> Cache:
    """Open a cache; several processes may use it at once.

    Raises:
        Misuse: if the file cannot be used.
    """
    need("langgraph.cache.sqlite", extra="evals", purpose="a cache of replies")
    from langgraph.cache.sqlite import SqliteCache

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return SqliteCache(path=str(file))
    except (OSError, sqlite3.Error) as error:
        raise Misuse(f"the replies in {file} cannot be read and written ({error}): move it away") from error


@contextmanager
def caching(cache: Cache | None) -> Iterator[Replies | None]:
    """Answer requests of the body from a cache, those of tasks that it starts included; None for no cache."""
    replies = Replies(cache) if cache is not None else None
    token = _replies.set(replies)
    try:
        yield replies
    finally:
        _replies.reset(token)


def cache_entry(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject) -> Entry | None:
    """Return the entry of a request in the cache; None if there is no cache, or it cannot tell the model from others.

    Args:
        base: The model.
        messages: The prompt.
        options: The options of the request.
    """
    replies = _replies.get()
    if replies is None:
        return None
    key = request_key(base, messages, options)
    return replies.entry(key) if key else None


class _Opaque(Exception):
    """Raised for an object that says nothing of itself."""


def request_key(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject) -> str | None:
    """Return a digest that is the same for the same request only, in every process.

    Args:
        base: The model.
        messages: The prompt. Ids of messages differ from run to run and are left out.
        options: The options of the request.

    Returns:
        None if the model cannot be told from others: it holds objects, such as a function, and names no parameters.
    """
    prompt = [message.model_dump(exclude={"id", "response_metadata", "usage_metadata"}) for message in messages]
    # What all chat models have, such as callbacks and a rate limit, does not change an answer.
    fields = type(base).model_fields.keys() - BaseChatModel.model_fields.keys()
    parameters = base._identifying_params
    description = [base.model_dump(include=fields, warnings=False), parameters, sorted(_addresses(base))]
    try:
        model = [_kind_of(base), *(_plain(part, opaque=bool(parameters)) for part in description)]
        # Providers' models name what matters. A class of the user's may keep it in private attributes.
        hidden = {} if parameters else _plain(_private(base))
    except _Opaque:
        return None
    request = json.dumps([model, hidden, _plain([prompt, options], opaque=True)], sort_keys=True)
    return hashlib.sha256(request.encode()).hexdigest()


def _addresses(base: BaseChatModel) -> set[str]:
    """Return where a model is served, as far as its clients say."""
    clients = [*vars(base).values(), *(base.__pydantic_private__ or {}).values()]
    inner = [getattr(client, "_client", None) for client in clients]
    addresses = [getattr(client, "base_url", None) for client in (*clients, *inner)]
    return {str(address) for address in addresses if address}


def _private(base: BaseChatModel) -> JsonObject:
    """Return the private attributes of a model, without clients, which some models make when they need them."""
    private: JsonObject = {}
    for name, value in (base.__pydantic_private__ or {}).items():
        if value is not None and (callable(value) or not _is_opaque(value)):
            private[name] = value
    return private


def _plain(value: object, *, opaque: bool = False) -> object:
    """Describe a value as plain data: a schema by its fields, an object by what it shows of itself, or by its kind.

    Raises:
        _Opaque: for an object that shows nothing of itself, unless `opaque` ones may be described by their kind.
    """
    # An enum goes on to its repr, which names its class: two of them may share a value.
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Mapping):
        # JSON would write 1 and "1" alike, and cannot sort keys of several types.
        return {repr(key): _plain(part, opaque=opaque) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, opaque=opaque) for part in value]
    if isinstance(value, set | frozenset):
        # The order of a set differs from process to process.
        return sorted(map(repr, value))
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value.model_json_schema()
    if isinstance(value, SecretStr | SecretBytes):
        return _kind_of(value)
    if not _is_opaque(value):
        return repr(value)
    if opaque:
        return _kind_of(value)
    raise _Opaque


def _kind_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _is_opaque(value: object) -> bool:
    """Tell whether an object shows no more of itself than where it lies in memory."""
    return " at 0x" in repr(value)
