"""A server that is attacked: how requests are sent to it, and what holds after each."""

import asyncio
import builtins
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import uuid4

import httpx

PATIENCE = 45.0
"""Seconds in which every request is answered."""
OK_SECONDS = 3.0
"""Seconds in which /ok is answered while the server is attacked: generous, for machines that do other things, too."""
OFFLINE = {"model": "offline"}
POLICY: dict[str, Any] = {
    "strategies": ["chain_of_thought", "react", "plan", "team", "memory", "reflection"],
    "models": ["offline"],
    "run": {"max_model_calls": 60},
    "runs_at_once": 5,
}
"""The rules that the server has been started with, as `REFLECT_POLICY`."""


class Breach(Exception):
    """What a server must not do was done; the text says what."""


@dataclass(frozen=True)
class Target:
    """A server, as one of its users sees it, and what chance decides."""

    client: httpx.AsyncClient
    other: httpx.AsyncClient
    """Another user's."""
    random: Random

    async def send(self, method: str, path: str, body: Any = None, *, raw: str | None = None) -> httpx.Response:
        """Send a request.

        Args:
            method: Of HTTP.
            path: Where to.
            body: What is sent as JSON, which may hold halves of surrogate pairs and numbers that JSON has not.
            raw: What is sent instead.

        Raises:
            Breach: if it is not answered, or the server calls it its own fault.
        """
        content = raw if raw is not None else None if body is None else json.dumps(body)
        try:
            answer = await self.client.request(method, path, content=content)
        except (httpx.TimeoutException, httpx.TransportError) as error:
            raise Breach(f"{method} {path} was not answered: {type(error).__name__}") from error
        if answer.status_code in (500, 503, 504):
            raise Breach(f"{method} {path} was answered with {answer.status_code}: {answer.text[:200]}")
        return answer

    async def run(self, strategy: str, thread: str, context: Mapping[str, Any], **body: Any) -> httpx.Response:
        """Start a run on a thread, made if need be, and wait for its end.

        Raises:
            Breach: if it fails with an error that nobody has thought of.
        """
        started = {"assistant_id": strategy, "context": context, "if_not_exists": "create", **body}
        answer = await self.send("POST", f"/threads/{thread}/runs/wait", started)
        if hasattr(builtins, kind := error_of(answer)):
            raise Breach(f"a run of {strategy} failed with {kind}: {answer.text[:200]}")
        return answer

    async def honest_run(self, strategy: str = "chain_of_thought", **context: Any) -> str:
        """Let a run that keeps to the rules end, and return its thread.

        Raises:
            Breach: if it is not let in, in twenty seconds in which nothing else happens.
        """
        deadline = time.monotonic() + 20
        while True:
            thread = str(uuid4())
            answer = await self.run(strategy, thread, {**OFFLINE, **context}, input=asking())
            if answer.status_code == 200 and (await self.values(thread)).get("outcome"):
                return thread
            if answer.status_code not in (200, 429) or time.monotonic() > deadline:
                raise Breach(f"an honest run of {strategy} was answered with {answer.status_code}: {answer.text[:200]}")
            await asyncio.sleep(0.5)

    async def values(self, thread: str) -> dict[str, Any]:
        """Return the state of a thread; nothing if there is none."""
        answer = await self.send("GET", f"/threads/{thread}/state")
        found = answer.json() if answer.status_code == 200 else {}
        return (found.get("values") or {}) if isinstance(found, dict) else {}

    async def spent(self, thread: str) -> dict[str, float]:
        """Return what the run of a thread has spent."""
        usage = (await self.values(thread)).get("usage") or {}
        return {name: amount for name, amount in usage.items() if isinstance(amount, int | float)}


def error_of(answer: httpx.Response) -> str:
    """Return the name of the error that a run has ended with; nothing if it has not."""
    found = answer.json() if answer.status_code == 200 else {}
    error = found.get("__error__") if isinstance(found, dict) else None
    return str(error.get("error")) if isinstance(error, dict) else ""


def asking(text: str = "What is reflexion?") -> dict[str, Any]:
    """Return the input of a run."""
    return {"messages": [{"role": "user", "content": text}]}


@asynccontextmanager
async def targeted(url: str, keys: tuple[str, str], random: Random) -> AsyncIterator[Target]:
    """Yield a server as the user of the first key sees it."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client(url, key)) for key in keys]
        yield Target(clients[0], clients[1], random)


def client(url: str, key: str = "") -> httpx.AsyncClient:
    """Return a client of a server."""
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE, limits=httpx.Limits(max_connections=None))


@asynccontextmanager
async def answering(url: str) -> AsyncIterator[None]:
    """Ask for /ok again and again meanwhile.

    Raises:
        Breach: at the end, if one answer came late.
    """
    waits, over = list[float](), asyncio.Event()
    asking = asyncio.create_task(_ask(url, waits, over))
    try:
        yield
    finally:
        over.set()
        await asking
    if max(waits) > OK_SECONDS:
        raise Breach(f"/ok was answered after {max(waits):.1f} seconds")


async def _ask(url: str, waits: list[float], over: asyncio.Event) -> None:
    async with client(url) as probe:
        while not over.is_set() or not waits:
            begun = time.monotonic()
            try:
                await probe.get("/ok")
            except httpx.HTTPError as error:
                raise Breach(f"/ok was not answered: {type(error).__name__}") from error
            waits.append(time.monotonic() - begun)
            await asyncio.sleep(0.05)
