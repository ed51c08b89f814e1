"""What requests may hold before a server reads them: `serve.bodies`."""

import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from reflective_agents.serve.bodies import BYTES, DEPTH, SIGNS, Bodies, cleaned
from reflective_agents.serve.refusals import Refused

TOO_MUCH = {
    "too deep": b"[" * (DEPTH + 1) + b"]" * (DEPTH + 1),
    "too deep and open": b'{"a":' * (DEPTH + 1),
    "lists": b"[" + b"[]," * SIGNS + b"1]",
    "texts": json.dumps(["x"] * SIGNS).encode(),
    "halves": b'"' + rb"\ud83d" * (SIGNS + 1) + b'"',
    "blanks": b" " * (BYTES // 5),
}
NO_JSON = {
    "latin-1": b'"\xe9"',
    "half of a pair in UTF-8": b'"\xed\xa0\x80"',
    "UTF-16": '"x"'.encode("utf-16-le"),
    "not a number": b'{"a":NaN}',
    "infinity": b"[-Infinity]",
    "infinite": b"[1e999]",
    "thousands of digits": b"9" * 5000,
}
KEPT: dict[str, Any] = {
    "deep": eval("[" * DEPTH + "]" * DEPTH),
    "signs in texts": '[{,"' * SIGNS,
    "escapes": {'\\u0000 \\"': "\\\\ud800 NaN 1e999 \n"},
    "characters": "é水😀",
    "numbers": [-1, 1e99, 1.5e-300, 10**99 - 1],
    "nothing": {},
}


@pytest.mark.parametrize("body", TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_what_is_too_much_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        cleaned(body)
    assert refused.value.status == 413


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON.keys())
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        cleaned(body)
    assert refused.value.status == 400


@pytest.mark.parametrize("value", KEPT.values(), ids=KEPT.keys())
@pytest.mark.parametrize("ascii_only", [True, False])
def test_everything_else_is_kept(value: Any, ascii_only: bool) -> None:
    assert json.loads(cleaned(json.dumps(value, ensure_ascii=ascii_only).encode())) == value


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (rb'"a\u0000b"', "ab"),
        (rb'"a\\\u0000b"', "a\\b"),
        (rb'{"\ud800":"\ude00\ud83d\ude00"}', {"\ufffd": "\ufffd😀"}),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
    ],
)
def test_texts_lose_what_cannot_be_stored(body: bytes, kept: Any) -> None:
    assert json.loads(cleaned(body)) == kept


def test_what_is_not_json_otherwise_is_left_to_the_server() -> None:
    for body in (b"", b"{", rb'{"\u0000":'):
        assert cleaned(body) == body


async def echo(request: Request) -> JSONResponse:
    return JSONResponse([await request.json(), request.headers["content-length"], await request.is_disconnected()])


async def echo_texts(socket: WebSocket) -> None:
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(text)
    await socket.close()


@pytest.fixture
def app() -> Bodies:
    routes = [Route("/{name:path}", echo, methods=["POST"]), WebSocketRoute("/", echo_texts)]
    return Bodies(Starlette(routes=routes))


async def test_a_server_reads_the_cleaned_body_once(app: Bodies) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.post("/x", content=rb'"a\u0000b"')
        assert answer.json() == ["ab", "4", False]
        assert (await client.post("/x", content=b"x" * (BYTES + 1))).status_code == 413
        for address in ("/%00", "/x%0a", "/x?a=%00"):
            assert (await client.post(address, json={})).status_code == 400


def test_a_socket_is_closed_when_it_brings_too_much(app: Bodies) -> None:
    with TestClient(app).websocket_connect("/") as socket:
        for sent in (r'"a\u0000b"', "[]"):
            socket.send_text(sent)
        socket.send_bytes(b'"x"')
        assert [socket.receive_text() for _ in range(3)] == ['"ab"', "[]", '"x"']
        socket.send_text("[" * 1000)
        with pytest.raises(WebSocketDisconnect):
            socket.receive_text()
