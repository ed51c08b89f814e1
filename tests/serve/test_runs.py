"""The stream of a run, against a server that repeats parts and leaves some out, as `langgraph dev` does."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from reflective_agents.serve.graphs import REPORT
from reflective_agents.serve.in_process import CallsItself
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Result, ServerApi, Token


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


class Dev:
    """Sends the parts up to one of them, goes on from an earlier one, and leaves out the last until asked again."""

    def __init__(
        self, replayed: int = 0, queued: int = 0, left_out: int = len(PARTS), fails: Sequence[int] = ()
    ) -> None:
        self._replayed, self._queued, self._left_out = replayed, queued, left_out
        self._fails = [*fails]
        """The statuses of the next requests."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        status = self._fails.pop(0) if self._fails else 200
        answers: dict[str, Any] = {"history": [{"values": {"answer": "so so good!"}, "tasks": []}]}
        name = request.url.path.rpartition("/")[2]
        answer: Response = JSONResponse(answers.get(name, {"status": "success", "run_id": "r"}), status)
        if name == "stream":
            events = self._events(int(request.headers["last-event-id"].removesuffix("-0")))
            answer = StreamingResponse(events, status, media_type="text/event-stream")
        await answer(scope, receive, send)

    async def _events(self, after: int) -> AsyncIterator[str]:
        replayed = [part for part in PARTS if 1000 + part[0] > after] if after > 0 else PARTS[: self._replayed]
        for number, event, data in replayed + PARTS[self._queued : self._left_out]:
            yield f"event: {event}\ndata: {json.dumps(data)}\nid: {1000 + number}-0\n\n"


async def api_of(server: ASGIApp) -> ServerApi:
    """Return what a route of a server calls it with."""
    found = list[ServerApi]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/route":
            found.append(ServerApi(Request(scope)))
        else:
            await server(scope, receive, send)

    async def nothing(*_: object) -> Any:
        return {}

    await CallsItself(app)({"type": "http", "path": "/route", "headers": []}, nothing, nothing)
    return found[0]


async def parts_from(server: ASGIApp) -> list[Mapping[str, Any] | Token | Result]:
    return [part async for part in (await api_of(server)).events("t", "r")]


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
async def test_each_part_comes_once(replayed: int, queued: int, left_out: int) -> None:
    parts = await parts_from(Dev(replayed, queued, left_out))
    seen = [part.text if isinstance(part, Token) else part for part in parts]
    assert seen[:-1] == [{"seq": 1}, {"seq": 2}, {"seq": 3}, "so ", "so ", "good", {"seq": 4}, {"seq": 5}, "!"]
    assert isinstance(seen[-1], Result)


@pytest.mark.matrix
@pytest.mark.parametrize("answered", range(3))
async def test_a_server_that_fails_for_a_moment_is_asked_again(answered: int) -> None:
    parts = await parts_from(Dev(fails=[200] * answered + [500]))
    assert isinstance(parts[-1], Result)
    assert len(parts) == len(PARTS) + 1


async def test_the_report_of_a_run_is_its_result_and_no_part_of_it() -> None:
    report, paths = {"answer": "42", "usage": {"model_calls": 1}}, list[str]()

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"])
        parts = [("custom", {"seq": 1}), ("custom", {REPORT: report}), ("end", {"status": "success"})]
        lines = (f"event: {event}\ndata: {json.dumps(data)}\n\n" for event, data in parts)
        await Response("".join(lines), media_type="text/event-stream")(scope, receive, send)

    assert await parts_from(server) == [{"seq": 1}, Result("success", report, "")]
    assert len(paths) == 1


async def test_a_thread_that_is_gone_is_not_waited_for() -> None:
    with pytest.raises(Refused, match="404"):
        await parts_from(Dev(fails=[404]))


async def test_parts_come_while_the_server_still_writes() -> None:
    """A stream is passed on as it comes, and its server is told when the reader has left."""
    left = asyncio.Event()

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        part = f"event: custom\ndata: {json.dumps({'seq': 1})}\n\n"
        await send({"type": "http.response.body", "body": part.encode(), "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        left.set()

    events = aiter((await api_of(server)).events("t", "r"))
    assert await anext(events) == {"seq": 1}
    assert not left.is_set()
    await events.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(left.wait(), 5)


async def test_a_stream_that_breaks_off_is_resumed() -> None:
    whole, broken = Dev(9, 9, 9), [True]

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        if broken and scope["path"].endswith("/stream"):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise ConnectionError(broken.pop())
        await whole(scope, receive, send)

    assert len(await parts_from(server)) == len(PARTS) + 1


async def test_a_run_that_is_over_and_tells_nobody_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflective_agents.serve.runs._SILENCE", 0.05)
    whole = Dev()

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].endswith("/stream"):
            return await whole(scope, receive, send)
        assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        return None

    (result,) = await asyncio.wait_for(parts_from(server), 20)
    assert isinstance(result, Result)
    assert result.status == "success"


async def test_what_comes_while_a_silent_run_is_asked_for_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflective_agents.serve.runs._SILENCE", 0.05)
    monkeypatch.setattr("reflective_agents.serve.runs.IN_AEGRA", True)
    events = ['event: custom\ndata: {"seq": 1}\nid: r_event_1\n\n']
    failed = 'event: error\ndata: {"error": "ModelFailed"}\nid: r_event_2\n\n'
    last = (failed, "event: end\ndata: {}\nid: r_event_3\n\n")

    async def stream(after: int) -> AsyncIterator[str]:
        for event in events[after:]:
            yield event
        if events[-1] != last[-1]:
            await asyncio.sleep(20)

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        name = request.url.path.rpartition("/")[2]
        if name == "stream":
            number = request.headers["last-event-id"].rpartition("_")[2]
            parts = stream(max(int(number), 0))
            return await StreamingResponse(parts, media_type="text/event-stream")(scope, receive, send)
        if name != "join":
            events.extend(last)
        return await JSONResponse({"status": "error"})(scope, receive, send)

    progress, result = await asyncio.wait_for(parts_from(server), 20)
    assert progress == {"seq": 1}
    assert isinstance(result, Result)
    assert (result.status, result.error) == ("error", "ModelFailed")
