"""Replies that come in pieces: the same answer and the same failures as those that come whole."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, HumanMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from tenacity import wait_none

from reflective_agents.models.calls import request
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import close_models, get_model
from reflective_agents.models.thoughts import thought_of
from reflective_agents.state.context import Context
from reflective_agents.state.errors import ModelFailed
from reflective_agents.state.run import NOTHING_SPENT

pytestmark = pytest.mark.wire
PROMPT = [HumanMessage("Why?")]
USAGE = {"prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19}


class Heard:
    """A listener that keeps what it hears."""

    is_subscribed = True

    def __init__(self) -> None:
        self.text = ""
        self.retracted: list[str] = []

    async def on_token(self, text: str) -> None:
        self.text += text

    async def retract(self) -> bool:
        self.retracted.append(self.text)
        self.text = ""
        return True


Event = dict[str, Any] | str
Reply = Callable[[int], tuple[int, Sequence[Event] | dict[str, Any]]]


class Server:
    """Answers the n-th request, from 0, by a status and the events of a stream or a body."""

    def __init__(self, reply: Reply) -> None:
        self.reply, self.requests = reply, 0

    async def answer(self, http: web.Request) -> web.StreamResponse:
        status, body = self.reply(self.requests)
        self.requests += 1
        if isinstance(body, dict):
            return web.json_response(body, status=status)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        for event in body:
            data = event if isinstance(event, str) else json.dumps(event)
            await response.write(f"data: {data}\n\n".encode())
            await asyncio.sleep(0)  # the reader shares this event loop
        await response.write(b"data: [DONE]\n\n")
        return response


Ask = Callable[..., Any]


@pytest.fixture
async def ask(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ask]:
    """Ask a model behind a server once, with a listener or without."""
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    servers: list[TestServer] = []

    async def answer(server: Server, listener: Heard | None, meter: Meter) -> AIMessage:
        app = web.Application()
        app.add_routes([web.post("/v1/chat/completions", server.answer)])
        running = TestServer(app)
        await running.start_server()
        servers.append(running)
        monkeypatch.setenv("OPENAI_BASE_URL", str(running.make_url("/v1")))
        (reply,) = await request(get_model("openai:m"), PROMPT, meter, listener=listener)
        return reply

    yield answer
    await close_models()
    for server in servers:
        await server.close()


def piece(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def stream(pieces: Sequence[dict[str, Any]], finish: str | None = "stop") -> list[Event]:
    return [*map(piece, pieces), *([piece({}, finish), {**piece({}), "choices": [], "usage": USAGE}] if finish else [])]


def whole(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}


def in_pieces(text: str, size: int) -> list[dict[str, Any]]:
    return [{"content": text[at : at + size]} for at in range(0, len(text), size)]


ANSWER = "# Title\nFirst line.\n\n- Second"


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("tag", ["think", "thinking", "thought", "reasoning"])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 1_000])
async def test_an_answer_is_the_same_streamed_or_whole(ask: Ask, tag: str, size: int) -> None:
    text = f"<{tag}>A secret\nplan.</{tag}>\n\n{ANSWER}"
    heard, meters = Heard(), [Meter(Context(), NOTHING_SPENT) for _ in range(2)]
    streamed = await ask(Server(lambda _: (200, stream(in_pieces(text, size)))), heard, meters[0])
    plain = await ask(Server(lambda _: (200, whole({"content": text}))), None, meters[1])
    assert streamed.text == plain.text == heard.text == ANSWER
    assert thought_of(streamed) == thought_of(plain) == "A secret\nplan."
    assert meters[0].usage["thinking_tokens"] == meters[1].usage["thinking_tokens"] > 0


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_a_thought_beside_an_answer_is_the_same_streamed_or_whole(ask: Ask, field: str) -> None:
    pieces = [{field: "A secret "}, {field: "plan."}, {"content": "\n\n# Title\n"}, {"content": "First line.\n"}]
    message = {field: "A secret plan.", "content": "\n\n# Title\nFirst line.\n"}
    meters = [Meter(Context(), NOTHING_SPENT) for _ in range(2)]
    streamed = await ask(Server(lambda _: (200, stream(pieces))), Heard(), meters[0])
    plain = await ask(Server(lambda _: (200, whole(message))), None, meters[1])
    assert streamed.text == plain.text == "# Title\nFirst line."
    assert meters[0].usage["thinking_tokens"] == meters[1].usage["thinking_tokens"] > 0


@pytest.mark.parametrize("code", [502, 529, 429, "server_error", None])
async def test_a_failure_in_mid_stream_is_retried(ask: Ask, code: int | str | None) -> None:
    broken = [piece({"content": "The "}), {"error": {"message": "overloaded", "code": code}}]
    server = Server(lambda number: (200, stream(in_pieces(ANSWER, 4)) if number else broken))
    heard, meter = Heard(), Meter(Context(), NOTHING_SPENT)
    reply = await ask(server, heard, meter)
    assert (reply.text, heard.text, heard.retracted) == (ANSWER, ANSWER, ["The "])
    assert (server.requests, meter.usage["failed_calls"]) == (2, 1)


async def test_a_refusal_in_mid_stream_is_not_retried(ask: Ask) -> None:
    server = Server(lambda _: (200, [{"error": {"message": "no such thing", "code": 403}}]))
    with pytest.raises(ModelFailed, match="no such thing"):
        await ask(server, Heard(), Meter(Context(), NOTHING_SPENT))
    assert server.requests == 1


async def test_a_stream_without_a_reason_to_finish_is_no_answer(ask: Ask) -> None:
    cut = stream([{"content": "The answer "}, {"content": "is for"}], finish=None)
    server = Server(lambda number: (200, cut if number < 2 else stream([{"content": "The answer is forty-two."}])))
    meter = Meter(Context(), NOTHING_SPENT)
    assert (await ask(server, Heard(), meter)).text == "The answer is forty-two."
    assert (server.requests, meter.usage["failed_calls"]) == (3, 2)
    with pytest.raises(ModelFailed, match="the stream ended before the reply did"):
        await ask(Server(lambda _: (200, cut)), Heard(), Meter(Context(), NOTHING_SPENT))


def called(*pieces: tuple[int | None, str | None, str | None, str]) -> list[dict[str, Any]]:
    """Return the pieces of calls, each an index, an id, a name and arguments."""
    return [
        {"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": text}}]}
        for index, id, name, text in pieces
    ]


@pytest.mark.parametrize(
    "arguments", ['{"city": "Par', '{"city": "Paris"', '{"city": "Paris", "sum": 1', "", '["Paris"]']
)
async def test_a_call_that_is_cut_off_is_invalid(ask: Ask, arguments: str) -> None:
    pieces = called((0, "a", "look", '{"city": "Rome"}'), (1, "b", "pay", arguments))
    reply = await ask(Server(lambda _: (200, stream(pieces, "length"))), Heard(), Meter(Context(), NOTHING_SPENT))
    assert [(call["id"], call["args"]) for call in reply.tool_calls] == [("a", {"city": "Rome"})]
    assert [(call["id"], call["name"]) for call in reply.invalid_tool_calls] == [("b", "pay")]


async def test_a_call_without_arguments_is_whole(ask: Ask) -> None:
    pieces = called((0, "a", "look", ""))
    reply = await ask(Server(lambda _: (200, stream(pieces, "tool_calls"))), Heard(), Meter(Context(), NOTHING_SPENT))
    assert [(call["id"], call["args"]) for call in reply.tool_calls] == [("a", {})]


@pytest.mark.parametrize("arguments", ["[]", "false", "0", '""', '"{}"', "{"])
async def test_arguments_that_are_no_object_are_invalid(ask: Ask, arguments: str) -> None:
    pieces = called((0, "a", "look", arguments))
    reply = await ask(Server(lambda _: (200, stream(pieces, "tool_calls"))), Heard(), Meter(Context(), NOTHING_SPENT))
    assert [(call["id"], call["args"]) for call in reply.invalid_tool_calls] == [("a", arguments)]
    assert reply.tool_calls == []


async def test_a_fragment_without_an_id_belongs_to_the_last_call_of_its_index(ask: Ask) -> None:
    pieces = called((0, "a", "look", '{"n": 1}'), (0, "b", "look", '{"n"'), (0, None, None, ": 2}"))
    reply = await ask(Server(lambda _: (200, stream(pieces, "tool_calls"))), Heard(), Meter(Context(), NOTHING_SPENT))
    assert [(call["id"], call["args"]["n"]) for call in reply.tool_calls] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("reasons", [["stop", "stop"], ["", "stop", ""], ["length", "stop"]])
async def test_a_stream_has_the_last_of_its_reasons_to_finish(ask: Ask, reasons: list[str]) -> None:
    events = [piece({"content": "Yes."}), *(piece({}, reason) for reason in reasons)]
    reply = await ask(Server(lambda _: (200, events)), Heard(), Meter(Context(), NOTHING_SPENT))
    assert (reply.text, reply.response_metadata["finish_reason"], reply.response_metadata["model_name"]) == (
        "Yes.",
        "stop",
        "m",
    )


@pytest.mark.parametrize("role", ["user", "system", "tool", "narrator", None])
@pytest.mark.parametrize("listener", [Heard(), None], ids=["streamed", "whole"])
async def test_a_reply_is_the_assistants_whatever_role_it_names(
    ask: Ask, role: str | None, listener: Heard | None
) -> None:
    message = {"role": role, "content": "Yes.", **called((0, "a", "look", "{}"))[0]}
    body = stream([message]) if listener else whole(message)
    reply = await ask(Server(lambda _: (200, body)), listener, Meter(Context(), NOTHING_SPENT))
    assert (type(reply), reply.text, [call["name"] for call in reply.tool_calls]) == (AIMessage, "Yes.", ["look"])


class InPieces(BaseChatModel):
    """A model of another provider, which streams these messages."""

    pieces: Any

    @property
    def _llm_type(self) -> str:
        return "in-pieces"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for piece in self.pieces:
            yield ChatGenerationChunk(message=piece)


async def test_a_call_of_another_provider_that_is_cut_off_is_invalid() -> None:
    starts = [tool_call_chunk(name="pay", args='{"sum": 1', id="a", index=0), tool_call_chunk(args="0", index=0)]
    pieces = [
        HumanMessageChunk(content="Yes."),
        *(AIMessageChunk(content="", tool_call_chunks=[start]) for start in starts),
    ]
    meter = Meter(Context(), NOTHING_SPENT)
    [reply] = await request(InPieces(pieces=pieces), PROMPT, meter, listener=Heard())
    assert (type(reply), reply.text, reply.tool_calls) == (AIMessage, "Yes.", [])
    assert [(call["id"], call["args"]) for call in reply.invalid_tool_calls] == [("a", '{"sum": 10')]


@pytest.mark.parametrize(("name", "reason"), [("stop_reason", "max_tokens"), ("finish_reason", "MAX_TOKENS")])
async def test_so_is_one_that_has_lost_all_of_its_arguments(name: str, reason: str) -> None:
    call = AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(name="pay", args="", id="a", index=0)])
    model = InPieces(pieces=[call, AIMessageChunk(content="", response_metadata={name: reason})])
    [reply] = await request(model, PROMPT, Meter(Context(), NOTHING_SPENT), listener=Heard())
    assert reply.tool_calls == []
    assert [call["id"] for call in reply.invalid_tool_calls] == ["a"]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # OpenAI's client has seen it, too
async def test_arguments_that_are_no_text_make_an_invalid_call(ask: Ask) -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "pay", "arguments": {"sum": 1}}}
    server = Server(lambda _: (200, stream([{"tool_calls": [call]}], "tool_calls")))
    reply = await ask(server, Heard(), Meter(Context(), NOTHING_SPENT))
    assert [each["name"] for each in reply.invalid_tool_calls] == ["pay"]
