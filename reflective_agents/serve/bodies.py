"""Requests, bounded and cleaned before a server reads them: the same for all routes and sockets of both servers.

Both servers parse, check and store a body on their event loops, and not all of their routes take what JSON allows:
Aegra answers depth, infinite numbers and null characters with 500.
"""

import json
import re

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reflective_agents.serve.refusals import Refused
from reflective_agents.text.clean import clean_data

BYTES = 6_000_000
"""The most bytes of a body."""
SIGNS = 50_000
"""The most commas, brackets, quotation marks, and escapes of invalid characters: each costs parsing time."""
DEPTH = 100
"""The most lists and objects within one another."""
# Digits and exponents that are long enough for more than 1.8e308, where a float becomes infinite.
_NOT_FINITE = re.compile(rb"N|I|(?<!\d)\d{100}|[eE]\+?\d{3}")
"""NaN, infinities, and numbers that might become infinite."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_INVALID_ESCAPES = re.compile(rb"\\u(0000|[dD][89a-fA-F])")
"""The null character, and halves of surrogate pairs, of which only pairs are characters."""


class Bodies:
    """Refuses a request that is too large, too deep, or not JSON; cleans its texts of what cannot be stored."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(scope, _checked_messages(receive), send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check_address(scope)
            body = cleaned(await _read(Request(scope, receive)))
        except Refused as refusal:
            return await refusal.response()(scope, receive, send)
        except ClientDisconnect:
            return None
        return await self._app(with_length(scope, body), replayed(body, receive), send)


def with_length(scope: Scope, body: bytes) -> Scope:
    """Return the scope of a request whose body has changed: with its length now."""
    length = str(len(body)).encode()
    headers = [(name, length if name == b"content-length" else value) for name, value in scope["headers"]]
    return {**scope, "headers": headers}


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a receiver of a body that was read already, and then of what the client still sends."""
    messages: list[Message] = [{"type": "http.request", "body": body}]

    async def read() -> Message:
        # After the body the server waits for the client to leave.
        return messages.pop() if messages else await receive()

    return read


def _checked_messages(receive: Receive) -> Receive:
    """Return a receiver of the messages of a socket that ends the connection when one of them is refused."""

    async def read() -> Message:
        message = await receive()
        if message["type"] != "websocket.receive":
            return message
        try:
            body = cleaned((message.get("text") or "").encode(errors="replace") or message.get("bytes") or b"")
        except Refused:
            return {"type": "websocket.disconnect", "code": 1009}
        return {"type": "websocket.receive", "text": body.decode()}

    return read


def _check_address(scope: Scope) -> None:
    if _CONTROLS.search(scope["path"]) or b"%00" in scope["query_string"]:
        raise Refused("the address holds control characters")


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BYTES:
            raise Refused(f"the body is too large: it may have {BYTES:,} bytes", status=413)
    return bytes(body)


def cleaned(body: bytes) -> bytes:
    """Return the body of a request as the server may read it.

    Raises:
        Refused: with 413 if it is too much, with 400 if it is not JSON in UTF-8 with finite numbers.
    """
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Refused("the body is not JSON: it is not encoded in UTF-8") from error
    if b"\0" in body:
        raise Refused("the body is not JSON: it holds null characters")
    # Escaped backslashes first: in \\u0000 the rest is text.
    texts = body.replace(rb"\\", b"")
    escapes = sum(map(texts.count, (rb"\u0000", rb"\ud", rb"\uD")))
    _check_structure(texts.replace(rb"\"", b""), escapes)
    return _without_invalid_characters(body) if _INVALID_ESCAPES.search(texts) else body


def _check_structure(body: bytes, signs: int) -> None:
    """Refuse a body that has too much structure.

    Args:
        body: The JSON without escaped quotation marks, so that quotation marks only delimit texts.
        signs: The signs that were counted already.
    """
    signs += body.count(b'"')
    # Every second piece lies outside of texts. No split where there are too many signs already: it would cost
    # as much.
    between = b"".join(body.split(b'"')[::2]) if signs <= SIGNS else b""
    signs += sum(map(between.count, (b",", b"[", b"]", b"{", b"}")))
    if signs > SIGNS or len(between) > BYTES // 10:
        raise Refused(f"the body holds too much: at most {SIGNS:,} commas, brackets and quotation marks", status=413)
    depth = 0
    for bracket in re.findall(rb"[][{}]", between):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH:
            raise Refused(f"the body is too deep: {DEPTH} lists and objects may lie within one another", status=413)
    if _NOT_FINITE.search(between):
        raise Refused("the body is not JSON: numbers are finite, and have less than 100 digits")


def _without_invalid_characters(body: bytes) -> bytes:
    try:
        return json.dumps(clean_data(json.loads(body)), ensure_ascii=False).encode()
    except ValueError:  # the server says that it is not JSON
        return body
