"""Replies of ever so many small parts: choices, lines, objects, numbers."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from tenacity import wait_none

from reflective_agents.models.calls import request
from reflective_agents.models.embeddings import embed, get_embeddings
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import close_models, get_model, load_client
from reflective_agents.state.context import Context
from reflective_agents.state.errors import ModelFailed
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.testing.serve import LocalServer
from tests.models.test_streams import Heard, stream, whole

pytestmark = [pytest.mark.hostile, pytest.mark.wire]
YES = whole({"content": "Yes."})
CHOICE = json.dumps(YES["choices"][0])


class Sending(LocalServer):
    """A server that answers everything by the same bytes, which it has made before."""

    body, kind = b"", "application/json"

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self.answer)]

    async def answer(self, _: web.Request) -> web.Response:
        return web.Response(body=self.body, content_type=self.kind)


@pytest.fixture(scope="module")
def running() -> Iterator[Sending]:
    """Start a server, and ask it once in every way: what is loaded then is no stranger's doing."""

    async def use(server: Sending) -> None:
        await load_client("openai:m")
        server.body = json.dumps(YES).encode()
        await ask()
        server.body = json.dumps({"data": [{"embedding": [1.0]}]}).encode()
        await vectors(1)
        server.body, server.kind = events(*stream([{"content": "Yes."}])), "text/event-stream"
        await ask(Heard())
        await close_models()

    with Sending().threaded() as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_BASE_URL", f"{server.address}/v1")
        asyncio.run(use(server))
        yield server


@pytest.fixture
def server(running: Sending, monkeypatch: pytest.MonkeyPatch) -> Sending:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    monkeypatch.setenv("OPENAI_BASE_URL", f"{running.address}/v1")
    running.kind = "application/json"
    return running


async def ask(listener: Heard | None = None, model: ChatOpenAI | None = None) -> str:
    meter = Meter(Context(), NOTHING_SPENT)
    reply = await request(get_model(model or "openai:m"), [HumanMessage("Why?")], meter, listener=listener)
    return reply[0].text


async def vectors(count: int) -> tuple[int, ...]:
    return (await embed(get_embeddings("openai:m"), ["a"] * count, Meter(Context(), NOTHING_SPENT))).shape


def vectors_in_words(size: int) -> bytes:
    vector = b",".join([b"0.12345678901234567"] * size)
    data = b",".join(b'{"index":%d,"embedding":[%b]}' % (at, vector) for at in range(256))
    return b'{"data":[' + data + b'],"usage":{}}'


def events(*each: object) -> bytes:
    texts = [event if isinstance(event, str) else json.dumps(event) for event in each]
    return "".join(f"data: {text}\n\n" for text in [*texts, "[DONE]"]).encode()


def with_choices(*each: str) -> bytes:
    return (json.dumps({**YES, "choices": []})[:-1] + f', "choices": [{",".join(each)}]}}').encode()


SHAPES: dict[str, Callable[[], bytes]] = {
    "70,000 choices": lambda: with_choices(*[CHOICE] * 70_000),
    "2,600,000 choices of nothing": lambda: with_choices(CHOICE, *["{}"] * 2_600_000),
    "levels": lambda: with_choices(CHOICE, *['{"a":{"b":[1]}}'] * 400_000),
    "names": lambda: with_choices(CHOICE, "{" + ",".join(f'"{number}":1' for number in range(700_000)) + "}"),
    "brackets": lambda: b"[" * 90_000,
    "numbers": lambda: with_choices(CHOICE, *["1"] * 3_900_000),
}


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("name", SHAPES)
async def test_a_reply_of_too_many_parts_is_not_read(server: Sending, name: str) -> None:
    server.body = await asyncio.to_thread(SHAPES[name])
    with pytest.raises(ModelFailed):
        await ask()
    await close_models()


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("other", [CHOICE, "{}", "1"], ids=["alike", "of nothing", "numbers"])
@pytest.mark.parametrize("own", [False, True], ids=["by name", "an object"])
async def test_of_many_choices_those_are_read_that_were_asked_for(server: Sending, own: bool, other: str) -> None:
    server.body = with_choices(CHOICE, *[other] * (95_000 // max(other.count(",") + 5, 5)))
    given: Any = {"model": "m", "api_key": "none", "base_url": f"{server.address}/v1", "max_retries": 0}
    assert await ask(model=await asyncio.to_thread(ChatOpenAI, **given) if own else None) == "Yes."
    await close_models()


@pytest.mark.thorough
@pytest.mark.parametrize("field", ["tool_calls", "annotations", "content"])
async def test_a_choice_of_many_parts_is_read_beside_the_loop(server: Sending, field: str) -> None:
    message = {"role": "assistant", "content": "Yes.", field: [{}] * 10_000}
    server.body = json.dumps(whole(message)).encode()
    with suppress(ModelFailed):
        await ask()
    await close_models()


STREAMS: dict[str, Callable[[], bytes]] = {
    "an event of choices": lambda: events(*stream([{}])).replace(b'"choices": [', b'"choices": [' + b"{}," * 50_000, 1),
    "an event of lines": lambda: events("1\ndata: " * 200_000),
    "an event without end": lambda: b"data: " + b"a" * 3_000_000,
    "lines without end": lambda: b":\n" * 1_000_000,
}


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("name", STREAMS)
async def test_an_event_of_too_many_parts_is_not_read(server: Sending, name: str, kind: str) -> None:
    server.body, server.kind = await asyncio.to_thread(STREAMS[name]), kind
    with pytest.raises(ModelFailed):
        await ask(Heard())
    await close_models()


@pytest.mark.thorough
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"], ids=repr)
async def test_many_small_events_let_others_have_their_turn(server: Sending, end: str) -> None:
    pieces = [{"choices": [{"delta": {"content": "a "}}]}] * 3_000
    server.body = events(*pieces, *stream([{"content": "b"}])).replace(b"\n\n", end.encode())
    server.kind = "text/event-stream"
    heard = Heard()
    assert await ask(heard) == "a " * 3_000 + "b"
    await close_models()


@pytest.mark.thorough
@pytest.mark.timeout(600)
async def test_fragments_of_arguments_that_are_no_json_are_joined_in_linear_time(server: Sending) -> None:
    first = {"index": 0, "id": "a", "function": {"name": "search", "arguments": ""}}
    fragment = {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]}
    begin, *end = stream([{"tool_calls": [first]}], "tool_calls")
    fragments = f"data: {json.dumps(fragment)}\n\n".encode() * 20_000
    server.body, server.kind = events(begin)[: -len(events())] + fragments + events(*end), "text/event-stream"
    assert await ask(Heard()) == ""
    await close_models()


@pytest.mark.matrix
@pytest.mark.parametrize("size", [1, 4_096])
async def test_vectors_in_words_are_read_one_by_one(server: Sending, size: int) -> None:
    server.body = await asyncio.to_thread(vectors_in_words, size)
    assert await vectors(256) == (256, size)
    await close_models()


@pytest.mark.matrix
@pytest.mark.parametrize("part", ["1,", "[],", "[", '{"embedding":[1]},', '"",'])
async def test_vectors_without_end_are_not_read(server: Sending, part: str) -> None:
    server.body = await asyncio.to_thread(
        lambda: b'{"data":[{"embedding":[' + part.encode() * (31_000_000 // len(part)) + b"1]}]}"
    )
    with pytest.raises(ModelFailed):
        await vectors(2)
    await close_models()
