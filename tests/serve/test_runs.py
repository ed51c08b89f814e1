"""The stream of a run, against a server that repeats parts and leaves some out, as `langgraph dev` does."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from threading import Thread
from typing import Any, ClassVar

import pytest
from starlette.requests import Request

from reflective_agents.serve import runs
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Result, ServerApi, Token

pytestmark = pytest.mark.wire


def piece(text: str, offset: int) -> list[dict[str, Any]]:
    return [{"type": "AIMessageChunk", "content": text, "additional_kwargs": {"offsets": [offset]}}, {}]


PARTS = [
    (1, "custom", {"seq": 1}),
    (2, "custom", {"seq": 2}),
    (2, "custom", {"seq": 3}),
    (3, "messages", piece("so ", 0)),
    (3, "messages", piece("so ", 3)),
    (5, "messages", piece("good", 6)),
    (5, "custom", {"seq": 4}),
    (6, "custom", {"seq": 5}),
    (6, "messages", piece("!", 10)),
]


class Dev(BaseHTTPRequestHandler):
    """Sends the parts up to one of them, goes on from an earlier one, and leaves out the last until asked again."""

    replayed, queued, left_out = 0, 0, len(PARTS)
    fails: ClassVar[list[int]] = []
    """The statuses of the next requests."""

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2].partition("?")[0]
        self.send_response(self.fails.pop(0) if self.fails else 200)
        self.send_header("content-type", "text/event-stream" if name == "stream" else "application/json")
        self.end_headers()
        if name == "stream":
            after = int(self.headers["last-event-id"].removesuffix("-0"))
            replayed = [part for part in PARTS if 1000 + part[0] > after] if after > 0 else PARTS[: self.replayed]
            for number, event, data in replayed + PARTS[self.queued : self.left_out]:
                text = f"event: {event}\ndata: {json.dumps(data)}\nid: {1000 + number}-0\n\n"
                self.wfile.write(text.encode())
        else:
            self.wfile.write(json.dumps({"status": "success", "run_id": "r"}).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.fails.pop(0) if self.fails else 200)
        self.end_headers()
        self.wfile.write(json.dumps([{"values": {"answer": "so so good!"}, "tasks": []}]).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Dev) as server:
        Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


class OnIpv6(ThreadingHTTPServer):
    address_family = AF_INET6


async def test_the_server_is_called_at_the_address_that_it_listens_on() -> None:
    with OnIpv6(("::1", 0), Dev) as server:
        Thread(target=server.serve_forever).start()
        request = Request({"type": "http", "server": ("::1", server.server_port), "headers": []})
        parts = [part async for part in ServerApi(request).events("t", "r")]
        server.shutdown()
    assert isinstance(parts[-1], Result)


def parts_from(port: int) -> AsyncIterator[Mapping[str, Any] | Token | Result]:
    return ServerApi(Request({"type": "http", "server": ("127.0.0.1", port), "headers": []})).events("t", "r")


@pytest.mark.parametrize(
    ("replayed", "queued", "left_out"),
    [
        (9, 9, 9),
        (0, 0, 9),
        (6, 1, 9),
        (6, 3, 9),
        (7, 6, 9),
        (9, 8, 9),
        (9, 7, 9),
        (9, 0, 9),
        (4, 3, 9),
        (0, 0, 7),
        (6, 1, 6),
    ],
)
async def test_each_part_comes_once(
    port: int, replayed: int, queued: int, left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dev, "replayed", replayed)
    monkeypatch.setattr(Dev, "queued", queued)
    monkeypatch.setattr(Dev, "left_out", left_out)
    parts = [part async for part in parts_from(port)]
    seen = [part.text if isinstance(part, Token) else part for part in parts]
    assert seen[:-1] == [{"seq": 1}, {"seq": 2}, {"seq": 3}, "so ", "so ", "good", {"seq": 4}, {"seq": 5}, "!"]
    assert isinstance(seen[-1], Result)


@pytest.mark.parametrize("answered", range(3))
async def test_a_server_that_fails_for_a_moment_is_asked_again(
    port: int, answered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dev, "fails", [200] * answered + [500])
    parts = [part async for part in parts_from(port)]
    assert isinstance(parts[-1], Result)
    assert len(parts) == len(PARTS) + 1


async def test_a_thread_that_is_gone_is_not_waited_for(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dev, "fails", [404])
    with pytest.raises(Refused, match="404"):
        _ = [part async for part in parts_from(port)]


class Dropping(BaseHTTPRequestHandler):
    """Breaks off connections: before a run is created, or when it is."""

    drops: ClassVar[list[str]] = []
    """What the next requests meet: `lost` does nothing, `done` creates the run; neither is answered."""
    runs: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        drop = self.drops.pop(0) if self.drops else ""
        if drop != "lost":
            self.runs.insert(0, {"run_id": f"run {len(self.runs)}", "config": body["config"]})
        if not drop:
            self._send(self.runs[0])

    def do_GET(self) -> None:
        self._send(self.runs[:1])

    def _send(self, answer: Any) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("drops", "begun"), [([], 1), (["lost"], 1), (["done"], 1), (["lost", "lost", "done"], 1), (["lost"] * 9, 0)]
)
async def test_a_request_whose_connection_breaks_begins_one_run(
    monkeypatch: pytest.MonkeyPatch, drops: list[str], begun: int
) -> None:
    monkeypatch.setattr(runs, "_RECONNECT", 0.01)
    monkeypatch.setattr(Dropping, "drops", [*drops])
    monkeypatch.setattr(Dropping, "runs", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Dropping) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        api = ServerApi(Request({"type": "http", "server": ("127.0.0.1", server.server_port), "headers": []}))
        try:
            run = await api.start("t", "lats", {"input": {}}, {}, tokens=False)
        except Refused as refusal:
            run = str(refusal.status)
        server.shutdown()
    assert (run, len(Dropping.runs)) == (Dropping.runs[0]["run_id"] if begun else "503", begun)
