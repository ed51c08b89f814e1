"""Keeps web pages of others away from a server on this machine.

A server on the loopback interface is still within reach of every page that its user opens. A page may send a request
without asking (the browser only withholds the answer), or let its own name mean 127.0.0.1 (DNS rebinding). So a request
must be addressed to a name of this machine, and a page that sends one must come from Studio or from this machine.
Routes that the development server offers without a key are closed.

    REFLECT_ALLOWED_HOSTS     further names of the server, separated by commas: agents.example.org
    REFLECT_ALLOWED_ORIGINS   further origins of pages: https://chat.example.org
"""

import os
import re

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

STUDIO = "https://smith.langchain.com", "https://eu.smith.langchain.com"
LOCAL = ("localhost", "127.0.0.1", "[::1]")
CLOSED = "/internal/", "/deploy"
"""Routes of `langgraph dev` that need no key: they read and delete all threads, and deploy what is in its folder."""
_ANY_PORT = r"(:\d{1,5})?"
_LOCAL_PAGE = rf"https?://({'|'.join(map(re.escape, LOCAL))}){_ANY_PORT}"


def _names_in(variable: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip().lower() for name in os.environ.get(variable, "").split(","))))


class Guard(CORSMiddleware):
    """Refuses requests with status 403 if their Host or their Origin is not allowed; answers the others' preflights."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            app,
            allow_origins=(*STUDIO, *_names_in("REFLECT_ALLOWED_ORIGINS")),
            allow_origin_regex=_LOCAL_PAGE,
            allow_methods=("*",),
            allow_headers=("*",),
            allow_private_network=True,  # sent to allowed origins only: Studio is a public page
            expose_headers=("x-pagination-total", "x-pagination-next", "content-location"),
        )
        names = "|".join(map(re.escape, (*LOCAL, *_names_in("REFLECT_ALLOWED_HOSTS"))))
        self._host = re.compile(rf"({names}){_ANY_PORT}", re.IGNORECASE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan" or scope.get("root_path", "").startswith("/noauth"):  # the server calls itself
            return await self.app(scope, receive, send)
        if scope["path"].startswith(CLOSED):
            return await PlainTextResponse("Not Found", status_code=404)(scope, receive, send)
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._host.fullmatch(host):
            refusal = f"This server is not called {host!r}. Its operator can add the name to REFLECT_ALLOWED_HOSTS."
        elif origin is not None and not self.is_allowed_origin(origin):
            refusal = f"Pages of {origin} may not use this server. Its operator can add it to REFLECT_ALLOWED_ORIGINS."
        else:
            return await super().__call__(scope, receive, send)
        return await PlainTextResponse(refusal, status_code=403)(scope, receive, send)
