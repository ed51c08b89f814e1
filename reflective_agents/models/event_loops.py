"""What belongs to one event loop: a connection must not be used from another one.

Asynchronous callers are served in their own loop, synchronous ones in a background loop of the process.
"""

import asyncio
import ssl
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, ref

import httpx2
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from reflective_agents.offline import OfflineChatModel
from reflective_agents.state.forks import CachedProperty, after_fork
from reflective_agents.state.reply_bytes import ASKING, bounded

THREADS = 64
"""Most calls at once of the synchronous halves of models, for all synchronous callers that wait for no other one."""
_background: "WeakSet[asyncio.AbstractEventLoop]" = WeakSet()


@cache
def background_loop(caller: asyncio.AbstractEventLoop | None = None) -> asyncio.AbstractEventLoop:
    """Start the event loop that serves synchronous callers, in a thread of its own.

    Args:
        caller: The background loop that such a caller blocks itself, or one of whose threads it takes, and which
            therefore might never serve it.
    """
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS, "reflect-worker"))
    _background.add(loop)
    threading.Thread(target=loop.run_forever, name="reflect-loop", daemon=True).start()
    return loop


# A forked process has the loop, but not the thread that runs it: a caller would wait for ever.
after_fork(background_loop.cache_clear)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the running event loop; None outside of one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def is_background(loop: asyncio.AbstractEventLoop | None) -> bool:
    """Tell whether a loop serves synchronous callers."""
    return loop in _background


@cache
def _certificates() -> ssl.SSLContext:
    """Load the trusted certificates; this takes as long as many steps, so all loops share them."""
    return httpx2.create_ssl_context()


def load_certificates() -> None:
    """Load the trusted certificates before a client needs them."""
    _certificates()


class _Adapted(NamedTuple):
    """A chat model object of the user's, as it is asked in one loop."""

    original: "ReferenceType[BaseChatModel]"
    fields: tuple[int, ...]
    """The identities of its fields, by which a change of the object shows; the copies keep what they were."""
    copy: BaseChatModel | None
    """None for the object itself, which must not be kept alive."""


class Loop:
    """What belongs to one event loop."""

    def __init__(self) -> None:
        self.models: dict[Hashable, BaseChatModel] = {}
        """Models made for settings that name them."""
        self.quiet: dict[int, BaseChatModel] = {}
        """The same models by their ids, answering in one piece."""
        self.adapted: dict[int, _Adapted] = {}
        """Chat model objects of the user's, by their ids."""
        self.configured: dict[tuple[int, str], tuple[object, BaseChatModel]] = {}
        """What runs have made of configurable models, beside these themselves: by their ids, and what was chosen."""
        self.many_calls = False
        """Whether to choose the client that takes less for each of many calls, which warns if nobody closes it."""

    @CachedProperty
    def client(self) -> httpx2.AsyncClient:
        """The HTTP client of all models of this loop, made when the first one needs it, and closed with the loop."""
        client = self._make_client()
        if running_loop() is not None:
            self._closing = _closing(client)
            # Begins the generator without waiting: it has nothing to await before its `yield`, and the loop
            # now knows it.
            with suppress(StopIteration):
                self._closing.__anext__().send(None)
        return client

    def _make_client(self) -> httpx2.AsyncClient:
        hooks: Any = {"response": [bounded]}
        if self.many_calls:
            from reflective_agents.models.aiohttp_client import AioHttpClient  # late, as openai below

            return AioHttpClient(verify=_certificates(), headers=ASKING, event_hooks=hooks)
        from openai import DefaultAsyncHttpxClient

        return DefaultAsyncHttpxClient(verify=_certificates(), headers=ASKING, event_hooks=hooks)

    def adapt(self, model: BaseChatModel, fields: tuple[int, ...], copy: BaseChatModel | None) -> _Adapted:
        """Keep how a model is asked here, as long as the object of the user's lives."""
        adapted, quiet = self.adapted, self.quiet
        key, key_of_quiet = id(model), id(copy or model)

        def forget(_: object) -> None:
            adapted.pop(key, None)
            quiet.pop(key_of_quiet, None)

        quiet[key_of_quiet] = quiet_copy(copy or model)
        adapted[key] = _Adapted(ref(model, forget), fields, copy)
        return adapted[key]

    async def close(self) -> None:
        """Close the client, if there is one."""
        if "client" in self.__dict__:
            await self.client.aclose()


async def _closing(client: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
    """Close a client at the end of the event loop, which closes all generators that have begun in it."""
    try:
        yield
    finally:
        await client.aclose()


loops: "WeakKeyDictionary[asyncio.AbstractEventLoop, Loop]" = WeakKeyDictionary()


def of_this_loop() -> Loop:
    """Return the clients of the running event loop; outside of one, a fresh set that is not kept."""
    running = running_loop()
    if running is None:
        return Loop()
    if running not in loops:
        loops[running] = Loop()
    return loops[running]


def without_streaming(model: BaseChatModel) -> BaseChatModel:
    """Return the same model, answering in one piece.

    For each model there is one such copy: a new copy describes itself anew for each request, which takes longer than
    all that a tree search does between two requests.
    """
    return of_this_loop().quiet.get(id(model)) or quiet_copy(model)


def quiet_copy(model: BaseChatModel) -> BaseChatModel:
    """Copy a model, to answer in one piece; some also have a field of their own for that."""
    # ChatOpenAI(streaming=True) streams in spite of `disable_streaming`.
    own = {"streaming": False} if "streaming" in type(model).model_fields else {}
    return model.model_copy(update={"disable_streaming": True, **own})


def for_this_loop(model: BaseChatModel) -> BaseChatModel:
    """Return a chat model object of the user's as it can be asked in the running event loop.

    LangChain lets all objects of ChatOpenAI share a client: it is replaced by this loop's. A client that the user gave
    is never replaced, nor are those of other providers: such a model is asked asynchronously in the first loop of the
    user's that asks it, and elsewhere by its synchronous half, as LangChain would for a synchronous caller.
    """
    running = running_loop()
    if running is None or isinstance(model, OfflineChatModel):
        return model
    loop, fields = of_this_loop(), tuple(map(id, vars(model).values()))
    adapted = loop.adapted.get(id(model))
    # A user who sets another key or client on the object expects the next call to use it.
    if adapted is None or adapted.fields != fields:
        adapted = loop.adapt(model, fields, _adapted_copy(model, running, loop))
    return adapted.copy or model


def _adapted_copy(model: BaseChatModel, running: asyncio.AbstractEventLoop, loop: Loop) -> BaseChatModel | None:
    """Copy a model for a loop; None where it can be asked as it is."""
    is_for_sync_caller = running in _background
    has_clients = getattr(model, "http_client", None) is not None
    if _shares_client(model) and not (is_for_sync_caller and has_clients):
        from reflective_agents.models.openai_replies import read_beside_loop  # late, as openai above

        client = model.root_async_client.copy(http_client=loop.client)  # type: ignore[attr-defined]
        read_beside_loop(client)
        return model.model_copy(update={"root_async_client": client, "async_client": client.chat.completions})
    if is_for_sync_caller or _first_loop(model, running) is not running:
        return _synchronous(model)
    return None


def _shares_client(model: BaseChatModel) -> bool:
    """Tell whether a model has the asynchronous client that LangChain shares between all models of one address."""
    http = getattr(getattr(model, "root_async_client", None), "_client", None)
    # The private module is LangChain's wrapper of its shared client; what a user has chosen has another class
    # or is named.
    chosen = [getattr(model, name, None) for name in ("http_async_client", "http_socket_options")]
    return type(http).__module__.startswith("langchain_openai.") and chosen == [None, None]


_first_loops: "dict[int, tuple[ReferenceType[BaseChatModel], ReferenceType[asyncio.AbstractEventLoop]]]" = {}


def _first_loop(model: BaseChatModel, running: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop | None:
    """Return the first loop of the user's that has asked a model, the running one if none has; None if it is gone."""
    key = id(model)
    entry = _first_loops.setdefault(key, (ref(model, lambda _: _first_loops.pop(key, None)), ref(running)))
    return entry[1]()


def _synchronous(model: BaseChatModel) -> BaseChatModel | None:
    """Copy a model, to be asked by its synchronous half in a thread; None where that is how it is asked anyway."""
    kind = type(model)
    if (kind._agenerate, kind._astream) == (BaseChatModel._agenerate, BaseChatModel._astream):
        return None
    copy = model.model_copy()
    # Not constructed anew: validators would make other clients, and may need keys that are gone.
    object.__setattr__(copy, "__class__", _synchronous_class(kind))
    return copy


@cache
def _synchronous_class(kind: type[BaseChatModel]) -> type[BaseChatModel]:
    """Derive from the class of a chat model the same without its asynchronous half, unless it has no other."""

    async def agenerate(self: BaseChatModel, *args: Any, **kwargs: Any) -> ChatResult:
        try:
            return await BaseChatModel._agenerate(self, *args, **kwargs)
        # A class without a synchronous half can only be asked by its asynchronous one, in whatever loop.
        except NotImplementedError:
            return await kind._agenerate(self, *args, **kwargs)

    async def astream(self: BaseChatModel, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        half = kind if kind._stream is BaseChatModel._stream else BaseChatModel
        async for chunk in half._astream(self, *args, **kwargs):
            yield chunk

    # Traces and serialised forms name the user's class.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    streams = {} if kind._astream is BaseChatModel._astream else {"_astream": astream}
    return type(kind.__name__, (kind,), {**names, "_agenerate": agenerate, **streams})
