"""What the real client makes of each fault of the local OpenAI server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from langchain_core.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import ValidationError

from reflective_agents.state.schemas import Judgement
from reflective_agents.testing.faults import Fault
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request

pytestmark = pytest.mark.wire

ERRORS: list[tuple[Fault, type[ModelError], bool]] = [
    ("400", ModelInvalidRequestError, False),
    ("401", ModelAuthenticationError, False),
    ("429", ModelRateLimitError, True),
    ("500", ModelAPIError, True),
    ("timeout", ModelTimeoutError, True),
    ("reset", ModelConnectionError, True),
]


def script(request: Request) -> Reply:
    if request.schema:
        return {"reasoning": "Supported by what was found.", "score": 0.5, "solved": False}
    return "one two three four five six"


@asynccontextmanager
async def model_with(fault: Fault | None, *, shown: Fault | None = None, **options: Any) -> AsyncIterator[ChatOpenAI]:
    """The real client of a server that shows the fault on every call, or whose script does."""
    settings: dict[str, Any] = {"model": "gpt-4.1", "api_key": "test", "max_retries": 0, "stream_usage": True}
    server = OpenAIServer(options.pop("reply", script), faults=lambda body, number: fault, retry_after=0.25)
    settings["timeout"] = 0.5 if "timeout" in (fault, shown) else 20
    async with server, openai.DefaultAsyncHttpxClient() as http:
        yield ChatOpenAI(**settings, base_url=server.base_url, http_async_client=http, **options)
    assert server.requests[0].ended is not None


async def read(model: ChatOpenAI, words: list[str]) -> None:
    async for chunk in model.astream("hi"):
        words.append(str(chunk.content))


async def ask(fault: Fault, **options: Any) -> dict[str, Any]:
    """The raw message, what was parsed of it and why not, of a forced schema."""
    async with model_with(fault, **options) as model:
        judge = model.with_structured_output(Judgement, method="function_calling", include_raw=True)
        answer = await judge.ainvoke("Judge.")
    assert isinstance(answer, dict)
    return answer


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(("fault", "error", "retryable"), ERRORS)
async def test_errors(fault: Fault, error: type[ModelError], retryable: bool) -> None:
    async with model_with(fault) as model:
        with pytest.raises(error) as raised:
            await model.ainvoke("hi")
    assert raised.value.is_retryable is retryable


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(("fault", "error", "retryable"), ERRORS)
async def test_errors_while_streaming(fault: Fault, error: type[ModelError], retryable: bool) -> None:
    words: list[str] = []
    async with model_with(fault) as model:
        with pytest.raises(error) as raised:
            await read(model, words)
    assert raised.value.is_retryable is retryable
    assert ("one " in words) == (fault == "reset")
    assert "six" not in words


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(("fault", "error", "retryable"), ERRORS)
async def test_errors_that_a_script_replies_show_as_their_faults(
    fault: Fault, error: type[ModelError], retryable: bool
) -> None:
    async with model_with(None, shown=fault, reply=lambda request: error("scripted")) as model:
        with pytest.raises(error):
            await model.ainvoke("hi")


async def test_a_rate_limit_says_how_long_to_wait() -> None:
    async with model_with("429") as model:
        with pytest.raises(openai.RateLimitError) as raised:
            await model.ainvoke("hi")
    assert raised.value.response.headers["Retry-After"] == "0.25"


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_truncated_body_is_a_json_error(streamed: bool) -> None:
    async with model_with("truncated_json") as model:
        with pytest.raises(json.JSONDecodeError):
            await (read(model, []) if streamed else model.ainvoke("hi"))


async def test_no_choices_are_no_generations() -> None:
    async with model_with("empty_choices") as model:
        assert (await model.agenerate([[HumanMessage("hi")]])).generations == [[]]
        with pytest.raises(IndexError):
            await model.ainvoke("hi")


async def test_n_is_ignored() -> None:
    async with model_with("n_ignored", n=5) as model:
        assert len((await model.agenerate([[HumanMessage("hi")]])).generations[0]) == 1


async def test_half_a_text() -> None:
    async with model_with("length") as model:
        message = await model.ainvoke("hi")
    assert (message.content, message.response_metadata["finish_reason"]) == ("one two three", "length")


@pytest.mark.parametrize(("fault", "finish_reason"), [("length", "length"), ("bad_arguments_json", "tool_calls")])
async def test_broken_arguments_are_an_invalid_call_and_no_parsing_error(fault: Fault, finish_reason: str) -> None:
    answer = await ask(fault)
    assert answer["raw"].invalid_tool_calls[0]["name"] == "Judgement"
    assert answer["raw"].response_metadata["finish_reason"] == finish_reason
    assert (answer["raw"].tool_calls, answer["parsed"], answer["parsing_error"]) == ([], None, None)


@pytest.mark.parametrize(("fault", "text"), [("null_content", ""), ("no_tool_call", "I would rather say it")])
async def test_a_missing_call_is_no_parsing_error(fault: Fault, text: str) -> None:
    answer = await ask(fault)
    assert answer["raw"].content.startswith(text)
    assert (answer["raw"].tool_calls, answer["parsed"], answer["parsing_error"]) == ([], None, None)


async def test_an_unknown_tool_is_a_parsing_error() -> None:
    answer = await ask("unknown_tool")
    assert answer["raw"].tool_calls[0]["name"] == "no_such_tool"
    assert "no_such_tool" in str(answer["parsing_error"])


@pytest.mark.parametrize(
    ("fault", "error"),
    [("wrong_arguments", "missing"), ("score_out_of_range", "less_than_equal"), ("score_nan", "finite_number")],
)
async def test_arguments_that_do_not_fit_are_a_parsing_error(fault: Fault, error: str) -> None:
    answer = await ask(fault)
    assert isinstance(answer["parsing_error"], ValidationError)
    assert {detail["type"] for detail in answer["parsing_error"].errors()} == {error}


@pytest.mark.matrix
@pytest.mark.parametrize("fault", ["wrong_arguments", "score_out_of_range", "score_nan", "bad_arguments_json"])
async def test_json_text_is_spoilt_like_arguments(fault: Fault) -> None:
    async with model_with(fault) as model:
        with pytest.raises(ValidationError):
            await model.with_structured_output(Judgement, method="json_schema").ainvoke("Judge.")


async def test_wrong_arguments_call_a_tool_even_where_the_script_answers() -> None:
    async with model_with("wrong_arguments", reply=lambda request: "text") as model:
        message = await model.bind_tools([Judgement]).ainvoke("hi")
        assert message.tool_calls[0]["args"] == {"wrong": 1}
        assert (await model.ainvoke("hi")).content == "text"


async def test_faults_are_a_function_of_body_and_number() -> None:
    def faults(body: dict[str, Any], number: int) -> Fault | None:
        return "500" if number == 0 and body["messages"][0]["content"] == "hi" else None

    async with (
        OpenAIServer(script, faults=faults) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="test", max_retries=1) as api,
    ):
        await api.chat.completions.create(model="any", messages=[{"role": "user", "content": "hi"}])
    assert [exchange.fault for exchange in server.requests] == ["500", None]
    assert [call.attempt for call in server.calls] == [0, 1]


async def test_a_server_closes_while_calls_hang() -> None:
    begun = asyncio.Event()

    def faults(body: dict[str, Any], number: int) -> Fault:
        begun.set()
        return "timeout"

    async with openai.AsyncOpenAI(base_url="http://unset", api_key="test", max_retries=0) as api:
        async with OpenAIServer(script, faults=faults) as server:
            api.base_url = server.base_url
            completion = api.chat.completions.create(model="any", messages=[{"role": "user", "content": "hi"}])
            call = asyncio.create_task(completion)
            await begun.wait()
        with pytest.raises(openai.APIConnectionError):
            await call
