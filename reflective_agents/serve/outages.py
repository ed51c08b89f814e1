"""Answers 503, and when to try again, where a request fails while the server is not ready: its database is away."""

import asyncio
from http import HTTPStatus

import httpx
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

RETRY_AFTER = "5"
"""Seconds after which a client may try again."""
_PATIENCE = 2.0
"""Seconds within which a server that is ready says so."""
_AWAY = {"error": "service_unavailable", "message": "the server's database is away: try again", "details": None}
"""What it is answered with, as Aegra words its errors."""


class AnswersOutages:
    """Tells failures of a server that is not ready from its defects: clients try again."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        is_answered = False

        async def write(message: Message) -> None:
            nonlocal is_answered
            if is_answered:
                return
            status = message.get("status")
            if status == HTTPStatus.INTERNAL_SERVER_ERROR and not await self._is_ready():
                is_answered = True
                answer = JSONResponse(_AWAY, HTTPStatus.SERVICE_UNAVAILABLE, {"retry-after": RETRY_AFTER})
                return await answer(scope, receive, send)
            if status == HTTPStatus.SERVICE_UNAVAILABLE:
                MutableHeaders(scope=message).setdefault("retry-after", RETRY_AFTER)
            await send(message)

        return await self._app(scope, receive, write)

    async def _is_ready(self) -> bool:
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return (await client.get("/ready")).status_code == HTTPStatus.OK
            except TimeoutError:
                return False
