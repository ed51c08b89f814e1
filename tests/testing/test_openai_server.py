"""The local OpenAI server through the real client: replies, tools, formats, candidates, streaming, counters."""

import asyncio
import math
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import openai
import pytest
from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from reflective_agents.state.schemas import AnswerQuestion, Judgement, Judgements
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer, main
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request, ToolUse, likely

pytestmark = pytest.mark.wire

JUDGEMENT = {"reasoning": "Supported.", "score": 0.5, "solved": False}


@tool
def search(query: str) -> str:
    """Search for a query."""
    return query


@asynccontextmanager
async def client(server: OpenAIServer, **options: Any) -> AsyncIterator[ChatOpenAI]:
    """The real client with HTTP connections of its own, which are closed with the test's event loop."""
    async with openai.DefaultAsyncHttpxClient() as http:
        yield _model(server, http_async_client=http, **options)


@contextmanager
def synchronous_client(server: OpenAIServer) -> Iterator[ChatOpenAI]:
    with openai.DefaultHttpxClient() as http:
        yield _model(server, http_client=http)


def _model(server: OpenAIServer, **options: Any) -> ChatOpenAI:
    settings = {"model": "gpt-4.1", "api_key": "test", "max_retries": 0, "stream_usage": True, "timeout": 10}
    return ChatOpenAI(**(settings | {"base_url": server.base_url} | options))


def echo(request: Request) -> Reply:
    return f"re: {request.last}"


async def test_text_and_usage() -> None:
    async with OpenAIServer(echo) as server, client(server) as model:
        message = await model.ainvoke("12345678")
    assert message.content == "re: 12345678"
    assert message.usage_metadata is not None
    assert (message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"]) == (3, 4)
    assert server.total_tokens == server.requests[0].tokens == 7


async def test_a_script_sees_the_same_as_in_the_fake_model() -> None:
    messages: list[BaseMessage] = [
        SystemMessage("Be brief."),
        HumanMessage("hi"),
        AIMessage("", tool_calls=[{"name": "search", "args": {"query": "a"}, "id": "1"}]),
        ToolMessage("found", tool_call_id="1"),
        AIMessage("", invalid_tool_calls=[{"name": "search", "args": "{", "id": "2", "error": None}]),
        ToolMessage("not JSON", tool_call_id="2"),
    ]
    fake = FakeChatModel(reply=echo)
    async with OpenAIServer(echo) as server, client(server) as model:
        for either in (model, fake):
            answer = await either.bind_tools([search], tool_choice="any").ainvoke(messages, seed=5, stop=["\n\n"])
            assert answer.content == "re: not JSON"
    over_the_wire, direct = server.calls[0], fake.calls[0]
    for name in ("tools", "tool_choice", "schema", "n", "seed", "stop", "text", "last", "attempt"):
        assert getattr(over_the_wire, name) == getattr(direct, name), name
    assert over_the_wire.schemas["search"]["required"] == ["query"]
    assert [m.type for m in over_the_wire.messages] == [m.type for m in direct.messages]


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
async def test_structured_output(method: str) -> None:
    async with OpenAIServer(lambda request: JUDGEMENT) as server, client(server) as model:
        judged = await model.with_structured_output(Judgement, method=method).ainvoke("Judge.")  # type: ignore[arg-type]
    assert judged == Judgement.model_validate(JUDGEMENT)
    assert server.calls[0].schema == "Judgement"
    assert server.calls[0].as_json == (method == "json_schema")


async def test_several_tool_calls_in_one_message() -> None:
    uses = [ToolUse("search", {"query": "a"}), ToolUse("search", {"query": "b"})]
    async with OpenAIServer(lambda request: uses) as server, client(server) as model:
        message = await model.bind_tools([search]).ainvoke("hi")
    assert [call["args"] for call in message.tool_calls] == [{"query": "a"}, {"query": "b"}]
    assert message.response_metadata["finish_reason"] == "tool_calls"


async def test_every_candidate_carries_the_usage_of_the_whole_call() -> None:
    def script(request: Request) -> Reply:
        return "x" * 4 * request.index

    messages: list[BaseMessage] = [HumanMessage("12345678")]
    async with OpenAIServer(script) as server, client(server, n=3) as model:
        real = await model.agenerate([messages])
        fake = await FakeChatModel(reply=script, n=3).agenerate([messages])
    for result in (real, fake):
        assert [generation.text for generation in result.generations[0]] == ["", "xxxx", "xxxxxxxx"]
        usages = [generation.message.usage_metadata for generation in result.generations[0]]  # type: ignore[union-attr]
        assert [usage["total_tokens"] for usage in usages] == [9, 9, 9]
        assert result.llm_output is not None
        assert result.llm_output["token_usage"]["total_tokens"] == server.total_tokens == 9


async def test_streaming_gives_words_and_the_usage() -> None:
    async with OpenAIServer(lambda request: "one two three") as server, client(server) as model:
        chunks = [chunk async for chunk in model.astream("hi")]
    assert [chunk.content for chunk in chunks if chunk.content] == ["one ", "two ", "three"]
    usages = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert [usage["total_tokens"] for usage in usages] == [server.total_tokens]


async def test_streaming_without_usage() -> None:
    async with OpenAIServer(lambda request: "one") as server, client(server, stream_usage=False) as model:
        assert [chunk.usage_metadata async for chunk in model.astream("hi") if chunk.usage_metadata] == []


async def test_streamed_tool_calls_add_up() -> None:
    uses = [ToolUse("search", {"query": "a b c"}), ToolUse("search", {"query": "d"})]
    async with OpenAIServer(lambda request: uses) as server, client(server) as model:
        chunks = [chunk async for chunk in model.bind_tools([search]).astream("hi")]
    streamed = add_ai_message_chunks(*[chunk for chunk in chunks if isinstance(chunk, AIMessageChunk)])
    assert [call["args"] for call in streamed.tool_calls] == [{"query": "a b c"}, {"query": "d"}]


async def test_streamed_candidates_are_interleaved_by_client_and_fake_alike() -> None:
    def script(request: Request) -> Reply:
        return f"{request.index}a {request.index}b "

    async with OpenAIServer(script) as server, client(server, n=2) as model:
        for either in (model, FakeChatModel(reply=script, n=2)):
            chunks = [str(chunk.content) async for chunk in either.astream("hi")]
            assert "".join(chunks) == "0a 1a 0b 1b "


async def test_tokens_are_cut_at_the_most_asked_for() -> None:
    async with OpenAIServer(lambda request: "x" * 100) as server, client(server, max_tokens=2) as model:
        message = await model.ainvoke("hi")
    assert (message.content, message.response_metadata["finish_reason"]) == ("x" * 7, "length")


async def test_log_probabilities_are_given_to_those_who_ask() -> None:
    def script(request: Request) -> Reply:
        return likely("one two\nthree", 0.5, 0.25) if request.index else likely("four", 0.125)

    messages: list[BaseMessage] = [HumanMessage("hi")]
    async with OpenAIServer(script) as server, client(server, n=2) as model:
        plain = await model.ainvoke("hi")
        ours = (await model.agenerate([messages], logprobs=True)).generations[0]
        fake = (await FakeChatModel(reply=script, n=2).agenerate([messages], logprobs=True)).generations[0]
    assert plain.response_metadata["logprobs"] is None
    for generations in (ours, fake):
        tokens = [generation.message.response_metadata["logprobs"]["content"] for generation in generations]  # type: ignore[union-attr]
        assert [[token["token"] for token in each] for each in tokens] == [["four"], ["one ", "two", "\n", "three"]]
        chances = [[round(math.exp(token["logprob"]), 9) for token in each] for each in tokens]
        assert chances == [[0.125], [0.5, 0.5, 0.5, 0.25]]


@pytest.mark.thorough
async def test_waves_times_and_bodies_are_recorded() -> None:
    async with OpenAIServer(echo, latency=lambda request: 0.5) as server, client(server) as model:
        for _ in range(2):
            await asyncio.gather(*(model.ainvoke(f"{number}") for number in range(5)))
    assert (len(server.calls), server.max_in_flight, server.waves) == (10, 5, 2)
    for exchange in server.requests:
        assert exchange.ended is not None
        assert exchange.ended > exchange.started
    assert server.requests[0].body["model"] == "gpt-4.1"


@pytest.mark.parametrize(
    "messages",
    [
        [AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}])],
        [AIMessage("", invalid_tool_calls=[{"name": "search", "args": "{", "id": "1", "error": None}])],
        [ToolMessage("uncalled", tool_call_id="1")],
    ],
)
async def test_tool_calls_and_tool_messages_must_match(messages: list[Any]) -> None:
    async with OpenAIServer(echo) as server, client(server) as model:
        with pytest.raises(ModelInvalidRequestError, match="tool"):
            await model.ainvoke([HumanMessage("hi"), *messages])
    assert server.total_tokens == 0


async def test_models_are_listed() -> None:
    async with (
        OpenAIServer(echo, model="mine") as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="test") as api,
    ):
        assert [model.id async for model in api.models.list()] == ["mine"]


def test_a_server_in_a_thread_serves_synchronous_code() -> None:
    with OpenAIServer(echo).threaded() as server, synchronous_client(server) as model:
        assert model.invoke("hi").content == "re: hi"
    with pytest.raises(openai.APIConnectionError), synchronous_client(server) as model:
        model.invoke("hi")


async def test_the_responder_fills_forms_and_answers_plainly() -> None:
    async with OpenAIServer(respond) as server, client(server) as model:
        assert (await model.ainvoke("hi")).content == "You said: hi"
        for schema in (Judgement, Judgements, AnswerQuestion):
            assert isinstance(await model.with_structured_output(schema).ainvoke("hi"), schema)
        message = await model.bind_tools([search, Judgement], tool_choice="any").ainvoke("hi")
        assert message.tool_calls[0]["name"] == "search"


@pytest.mark.thorough
@pytest.mark.process
def test_the_command_prints_where_it_serves() -> None:
    command = [sys.executable, "-m", "reflective_agents.testing.openai_server", "--latency", "0.01"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        settings = dict(pair.split("=", 1) for pair in process.stdout.readline().split())
        with openai.OpenAI(base_url=settings["OPENAI_BASE_URL"], api_key=settings["OPENAI_API_KEY"]) as api:
            reply = api.chat.completions.create(model="any", messages=[{"role": "user", "content": "hi"}])
        process.terminate()
    assert reply.choices[0].message.content == "You said: hi"


@pytest.mark.parametrize("wrong", [["--script", "nowhere.py:reply"], ["--script", "nowhere"], ["--port", "taken"]])
def test_the_command_refuses_in_words_what_it_cannot_serve(
    wrong: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(lambda request: "hi").threaded() as server:
        wrong = [str(server.port) if word == "taken" else word for word in wrong]
        monkeypatch.setattr(sys, "argv", ["openai_server", *wrong])
        with pytest.raises(SystemExit) as refusal:
            main()
    assert refusal.value.code == 2
    assert wrong[1] in capsys.readouterr().err


@pytest.mark.process
def test_without_its_library_the_server_names_the_extra() -> None:
    program = "import sys; sys.modules['aiohttp'] = None; import reflective_agents.testing.openai_server"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "reflective-agents[testing]" in done.stderr
