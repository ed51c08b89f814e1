"""Lets LangGraph's own clients get from Aegra 0.11 what they get from LangGraph's server, or a plain refusal.

Strategies may be named where Aegra takes ids of assistants, a run without an input goes on where its thread is, a state
without a checkpoint is the latest one, and threads are counted and found by some of their fields. The stream of a run
that was over long ago ends.
"""

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from uuid import uuid5

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from reflective_agents.serve.auth import ASSISTANTS
from reflective_agents.serve.bodies import replayed, with_length
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import strategy_names

_ASSISTANT = re.compile(r"/assistants/(\w+)(/(graph|schemas|subgraphs|versions|latest))?")
_RUNS = re.compile(r"(/threads/[^/]+)?/runs(/stream|/wait)?")
_STREAM = re.compile(r"/threads/[^/]+/runs/([^/]+)/stream")
_STATE = re.compile(r"(/threads/[^/]+/state)/checkpoint")
_THREADS = re.compile(r"/threads/(search|count)")
_COPY = re.compile(r"/threads/[^/]+/copy")
_FILTERS = "values", "ids", "extract"
"""What Aegra would read over: it would answer with threads that were not asked for."""
_PAGE = 1000
"""The most threads that Aegra lists at a time."""


class LangGraphClients:
    """Changes requests of LangGraph's clients so that Aegra understands them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path = scope["path"]
        if (named := _ASSISTANT.fullmatch(path)) and named[1] in strategy_names():
            path = f"/assistants/{uuid5(ASSISTANTS, named[1])}{named[2] or ''}"
            return await self._app(_at(scope, path), receive, send)
        if scope["method"] == "GET" and (stream := _STREAM.fullmatch(path)):
            return await self._app(await _to_its_end(scope, stream[1]), receive, send)
        if scope["method"] != "POST":
            return await self._app(scope, receive, send)
        try:
            answer = await self._answer(scope, receive, send)
        except Refused as refusal:
            answer = refusal.response()
        if answer is not None:
            await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Answer a POST, unless Aegra has answered it.

        Raises:
            Refused: if Aegra cannot do what it asks for.
        """
        path = scope["path"]
        if _COPY.fullmatch(path):
            raise Refused("Aegra copies no threads", status=HTTPStatus.NOT_IMPLEMENTED)
        runs, state, threads = _RUNS.fullmatch(path), _STATE.fullmatch(path), _THREADS.fullmatch(path)
        if not (runs or state or threads):
            await self._app(scope, receive, send)
            return None
        raw = await Request(scope, receive).body()
        body = _object(raw)
        if runs:
            if body.get("after_seconds"):
                raise _unable("after_seconds", "starts runs at once")
            if runs[1] and _goes_on(body):
                raw = json.dumps({**body, "checkpoint": {}}, ensure_ascii=False).encode()
        elif threads:
            if unknown := [name for name in _FILTERS if body.get(name)]:
                raise _unable(unknown[0], "finds threads by their status and metadata")
            if threads[1] == "count":
                return await self._count(scope, body)
            if names := body.pop("select", None):
                if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
                    raise Refused("select: it is not a list of names", "select", status=HTTPStatus.UNPROCESSABLE_ENTITY)
                return await self._select(scope, body, names)
        elif state and not _names_checkpoint(body):
            scope, raw = {**_at(scope, state[1]), "method": "GET"}, b""
        await self._app(with_length(scope, raw), replayed(raw, receive), send)
        return None

    async def _select(self, scope: Scope, body: JsonObject, names: list[str]) -> Response:
        found = await self._found(scope, body)
        if isinstance(found, Response):
            return found
        selected: list[JsonObject] = []
        for thread in found:
            selected.append({name: thread[name] for name in names if name in thread})
        return JSONResponse(selected)

    async def _count(self, scope: Scope, body: JsonObject) -> Response:
        count, page = 0, _PAGE
        while page == _PAGE:
            found = await self._found(scope, {**body, "limit": _PAGE, "offset": count})
            if isinstance(found, Response):
                return found
            page = len(found)
            count += page
        return JSONResponse(count)

    async def _found(self, scope: Scope, body: JsonObject) -> list[JsonObject] | Response:
        """Return the threads that Aegra finds, or its refusal."""
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url="http://localhost") as aegra:
            answer = await aegra.post("/threads/search", headers=headers, json=body)
        if answer.status_code != HTTPStatus.OK:
            return Response(answer.content, answer.status_code, media_type="application/json")
        threads: list[JsonObject] = answer.json()
        return threads


async def _to_its_end(scope: Scope, run: str) -> Scope:
    """Return a request for the parts of a run, from the first on where none is kept.

    Aegra keeps parts for ten minutes, and would then wait for ever for what follows one, though the run is over.
    """
    headers = [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]
    if len(headers) == len(scope["headers"]):
        return scope
    from aegra_api.services.broker import broker_manager

    return scope if await broker_manager.get_event_sequence(run) else {**scope, "headers": headers}


def _goes_on(body: Mapping[str, Any]) -> bool:
    """Tell whether a run has nothing to begin with: it goes on with what its thread was at."""
    return all(body.get(name) is None for name in ("input", "command", "checkpoint", "checkpoint_id"))


def _names_checkpoint(body: JsonObject) -> bool:
    """Tell whether a request for a state names a checkpoint; what is none, Aegra refuses."""
    checkpoint = body.get("checkpoint") or {}
    return not isinstance(checkpoint, dict) or bool(checkpoint.get("checkpoint_id"))


def _object(raw: bytes) -> JsonObject:
    try:
        body = json.loads(raw)
    except ValueError:  # Aegra says so
        return {}
    return body if isinstance(body, dict) else {}


def _at(scope: Scope, path: str) -> Scope:
    return {**scope, "path": path, "raw_path": path.encode()}


def _unable(name: str, reason: str) -> Refused:
    return Refused(f"{name}: Aegra {reason}", name, status=HTTPStatus.UNPROCESSABLE_ENTITY)
