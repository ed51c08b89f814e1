"""OpenAI's own client, pointed at the server: a strategy is a model."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph_sdk.client import LangGraphClient
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel, SecretStr

from reflective_agents.state.settings import strategy_names
from reflective_agents.testing.openai_server import OpenAIServer

pytestmark = [pytest.mark.studio, pytest.mark.xdist_group("studio")]

WHY: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Why is reflection useful?"}]
SLOW: list[ChatCompletionMessageParam] = [{"role": "user", "content": "A slow and unsolvable question."}]


@pytest.fixture
async def chat(address: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as client:
        yield client


async def test_the_models_are_the_strategies(chat: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in chat.models.list()] == list(strategy_names())
    assert (await chat.models.retrieve("lats:openai:gpt-4.1-mini")).id == "lats:openai:gpt-4.1-mini"
    with pytest.raises(openai.NotFoundError):
        await chat.models.retrieve("latz")


async def test_a_completion(chat: openai.AsyncOpenAI, openai_server: OpenAIServer) -> None:
    before = len(openai_server.requests)
    answer = await chat.chat.completions.create(
        model="reflection", messages=WHY, extra_body={"settings": {"max_rounds": 2}}
    )
    assert answer.choices[0].message.content == "Answer to: Why is reflection useful?"
    assert answer.choices[0].finish_reason == "stop"
    assert "critique: round=1" in answer.choices[0].message.model_dump()["reasoning_content"]
    assert answer.usage
    assert answer.usage.model_dump()["model_calls"] == len(openai_server.requests) - before == 2
    assert answer.usage.total_tokens == sum(call.tokens for call in openai_server.requests[before:])


@pytest.mark.thorough
async def test_what_a_strategy_does_not_do_is_named(chat: openai.AsyncOpenAI) -> None:
    answer = await chat.chat.completions.with_raw_response.create(
        model="lats", messages=WHY, temperature=0, top_p=0.5, reasoning_effort="low"
    )
    assert answer.headers["x-ignored"] == "temperature, top_p"


async def test_a_stream(chat: openai.AsyncOpenAI) -> None:
    stream = await chat.chat.completions.create(
        model="reflection", messages=WHY, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta.model_dump() for chunk in chunks if chunk.choices]
    assert "".join(delta["content"] or "" for delta in deltas) == "Answer to: Why is reflection useful?"
    thoughts = [delta["reasoning_content"] for delta in deltas if delta.get("reasoning_content")]
    assert [thought.split(":")[0] for thought in thoughts] == ["begin", "draft", "critique", "end"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage
    assert chunks[-1].usage.total_tokens > 0


@pytest.mark.thorough
async def test_a_limit_is_the_finish_reason(chat: openai.AsyncOpenAI) -> None:
    question: list[ChatCompletionMessageParam] = [{"role": "user", "content": "An unsolvable question."}]
    answer = await chat.chat.completions.create(
        model="lats", messages=question, extra_body={"settings": {"max_model_calls": 5}}
    )
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.content


@pytest.mark.thorough
async def test_a_thread_holds_the_conversation(chat: openai.AsyncOpenAI, client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    for question in ("Why?", "Why not?"):
        await chat.chat.completions.create(
            model="reflection", messages=[{"role": "user", "content": question}], extra_body={"thread_id": thread}
        )
    values = (await client.threads.get_state(thread))["values"]
    assert [message["type"] for message in values["messages"]] == ["human", "ai", "human", "ai"]  # type: ignore[call-overload]


@pytest.mark.thorough
async def test_a_conversation_without_a_thread_leaves_none(chat: openai.AsyncOpenAI, client: LangGraphClient) -> None:
    answer = await chat.chat.completions.create(model="chain_of_thought", messages=WHY)
    thread = answer.model_dump()["thread_id"]
    for _ in range(50):
        if thread not in {found["thread_id"] for found in await client.threads.search(limit=1000)}:
            return
        await asyncio.sleep(0.1)
    pytest.fail("the thread is still there")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("settings", "error", "param"),
    [
        ({"corpus": "/etc"}, openai.APIStatusError, None),
        ({"unsafe_code": True}, openai.APIStatusError, None),
        ({"max_expansion": 1}, openai.BadRequestError, "settings.max_expansion"),
        ({"model": "nobody:knows"}, openai.BadRequestError, None),
    ],
)
async def test_what_is_not_allowed_is_refused(
    chat: openai.AsyncOpenAI, settings: dict[str, object], error: type[openai.APIStatusError], param: str | None
) -> None:
    with pytest.raises(error) as refused:
        await chat.chat.completions.create(model="lats", messages=WHY, extra_body={"settings": settings})
    assert 400 <= refused.value.status_code < 500
    assert refused.value.param == param


@pytest.mark.thorough
@pytest.mark.matrix
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("patience", [0.02, 1.0])  # seconds: before the run's id is known, and in its first call
async def test_a_client_that_leaves_stops_the_run(
    chat: openai.AsyncOpenAI, openai_server: OpenAIServer, streamed: bool, patience: float
) -> None:
    before = len(openai_server.requests)

    async def ask() -> None:
        if not streamed:
            await chat.chat.completions.create(model="reflection", messages=SLOW)
            return
        async for _ in await chat.chat.completions.create(model="reflection", messages=SLOW, stream=True):
            pass

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ask(), patience)
    await asyncio.sleep(3.5)  # the first of its calls would have been answered by then, and the second made
    assert len(openai_server.requests) - before <= 1


@pytest.mark.thorough
async def test_a_run_that_nobody_waits_for_goes_on_if_it_is_to(
    chat: openai.AsyncOpenAI, client: LangGraphClient, openai_server: OpenAIServer
) -> None:
    thread = (await client.threads.create())["thread_id"]
    wish = {"thread_id": thread, "on_disconnect": "continue", "settings": {"max_rounds": 1}}
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(chat.chat.completions.create(model="reflection", messages=SLOW, extra_body=wish), 1.0)
    for _ in range(150):
        state = await client.threads.get_state(thread)
        if not state["next"] and state["values"] and state["values"]["answer"]:  # type: ignore[call-overload]
            return
        await asyncio.sleep(0.1)
    pytest.fail("the run has not gone on")


@pytest.mark.thorough
async def test_langchains_client(address: str) -> None:
    model = ChatOpenAI(model="reflection", base_url=f"{address}/v1", api_key=SecretStr("any"))
    answer = await model.ainvoke("Why?")
    assert answer.content == "Answer to: Why?"
    assert answer.usage_metadata
    assert answer.usage_metadata["total_tokens"] > 0
    assert "".join([str(chunk.content) async for chunk in model.astream("Why?")]) == "Answer to: Why?"


@pytest.mark.thorough
def test_the_documented_examples(address: str) -> None:
    text = (Path(__file__).parents[2] / "docs/serving.md").read_text()
    examples = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
    names: dict[str, Any] = {}
    exec("\n".join(examples).replace("http://localhost:8000", address), names)
    assert names["answer"].choices[0].message.content == "Answer to: Why is reflection useful in AI?"
    assert names["choice"].message.content == "It is 20 degrees in Oslo."


# The client's own tools, and answers in a form

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
WARM: list[Any] = [{"role": "user", "content": "How warm is it there? weather for two"}]
FORM: Any = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}


def results(message: Any, text: str = "20 degrees") -> list[Any]:
    return [
        {"role": "tool", "tool_call_id": call.id, "content": f"{text} in {call.function.arguments}"}
        for call in message.tool_calls
    ]


async def test_a_client_carries_its_tools_out(chat: openai.AsyncOpenAI, openai_server: OpenAIServer) -> None:
    before = len(openai_server.requests)
    first = await chat.chat.completions.create(model="react", messages=WARM, tools=[WEATHER])
    calls = first.choices[0].message
    assert (first.choices[0].finish_reason, calls.content) == ("tool_calls", None)
    assert [call.function.name for call in calls.tool_calls or []] == ["weather", "weather"]  # type: ignore[union-attr]
    assert all(len(call.id) <= 40 for call in calls.tool_calls or [])
    history = [*WARM, calls.model_dump(include={"role", "content", "tool_calls"}), *results(calls)]
    second = await chat.chat.completions.create(model="react", messages=history, tools=[WEATHER])
    assert second.choices[0].finish_reason == "stop"
    assert str(second.choices[0].message.content).count("20 degrees") == 2
    assert first.usage
    assert second.usage
    spent = first.usage.total_tokens + second.usage.total_tokens
    assert spent == sum(call.tokens for call in openai_server.requests[before:])
    assert (first.usage.model_dump()["model_calls"], second.usage.model_dump()["model_calls"]) == (1, 1)


@pytest.mark.thorough
async def test_a_stream_of_calls(chat: openai.AsyncOpenAI) -> None:
    stream = await chat.chat.completions.create(model="react", messages=WARM, tools=[WEATHER], stream=True)
    chunks = [chunk.choices[0] async for chunk in stream if chunk.choices]
    calls = [call for chunk in chunks for call in chunk.delta.tool_calls or []]
    assert [(call.index, call.function.name) for call in calls if call.function] == [(0, "weather"), (1, "weather")]
    assert chunks[-1].finish_reason == "tool_calls"


@pytest.mark.thorough
async def test_results_that_nothing_waits_for_are_refused(chat: openai.AsyncOpenAI) -> None:
    first = await chat.chat.completions.create(model="react", messages=WARM, tools=[WEATHER])
    calls = first.choices[0].message
    history = [*WARM, calls.model_dump(include={"role", "content", "tool_calls"})]
    answers = results(calls)

    async def refused(messages: list[Any], model: str = "react") -> int:
        with pytest.raises(openai.APIStatusError) as error:
            await chat.chat.completions.create(model=model, messages=messages, tools=[WEATHER])
        return error.value.status_code

    assert await refused([*history, answers[0]]) == 400  # a result is missing
    assert await refused([*history, *answers], model="trials") == 400
    assert await refused([*history, {"role": "tool", "tool_call_id": "call_1", "content": "20"}]) == 404
    await chat.chat.completions.create(model="react", messages=[*history, *answers], tools=[WEATHER])
    assert await refused([*history, *answers]) == 404  # they have been given


@pytest.mark.thorough
async def test_langchains_agent_uses_its_own_tools(address: str) -> None:
    model = ChatOpenAI(model="react", base_url=f"{address}/v1", api_key=SecretStr("any")).bind_tools([WEATHER])
    question = HumanMessage(WARM[0]["content"])
    calls = await asyncio.to_thread(model.invoke, [question])
    assert isinstance(calls, AIMessage)
    answers = [ToolMessage("20 degrees", tool_call_id=call["id"]) for call in calls.tool_calls]
    answer = await asyncio.to_thread(model.invoke, [question, calls, *answers])
    assert answer.text.count("20 degrees") == 2


@pytest.mark.matrix
@pytest.mark.parametrize("strategy", ["lats", "chain_of_thought"])
async def test_who_cannot_ask_for_tools_says_so(chat: openai.AsyncOpenAI, strategy: str) -> None:
    with pytest.raises(openai.BadRequestError, match="these do: plan, react"):
        await chat.chat.completions.create(model=strategy, messages=WARM, tools=[WEATHER])


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["chain_of_thought", "lats"])
@pytest.mark.parametrize("form", [FORM, {"type": "json_object"}])
async def test_an_answer_in_a_form(chat: openai.AsyncOpenAI, strategy: str, form: Any) -> None:
    answer = await chat.chat.completions.create(model=strategy, messages=WHY, response_format=form)
    filled = json.loads(str(answer.choices[0].message.content))
    assert isinstance(filled, dict)
    assert form["type"] == "json_object" or filled.keys() == {"city"}


@pytest.mark.thorough
async def test_a_form_read_by_openais_own_helper(chat: openai.AsyncOpenAI) -> None:
    class City(BaseModel):
        city: str

    answer = await chat.chat.completions.parse(model="chain_of_thought", messages=WHY, response_format=City)
    assert isinstance(answer.choices[0].message.parsed, City)


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize(
    "wish",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "string"}}}},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "xml"}},
        {"tool_choice": "required"},
        {"tools": [{"type": "web_search"}]},
        {"n": 2},
        {"logprobs": True},
    ],
)
async def test_what_cannot_be_done_is_refused_by_name(chat: openai.AsyncOpenAI, wish: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await chat.chat.completions.create(model="react", messages=WHY, **wish)
    assert str(refused.value.param).split(".")[0] in {*wish, "settings"}


# Tokens, and images

LONG = "Reflection finds mistakes. " * 40


@pytest.mark.thorough
async def test_the_answer_comes_while_it_is_written(chat: openai.AsyncOpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": f"Repeat: {LONG}"}]
    once = {"settings": {"max_rounds": 1}}
    stream = await chat.chat.completions.create(model="reflection", messages=messages, stream=True, extra_body=once)
    deltas = [chunk.choices[0].delta.model_dump() async for chunk in stream if chunk.choices]
    order = [(delta.get("reasoning_content") or "answer").split(":")[0] for delta in deltas[1:-1]]
    assert order.count("answer") > 1
    assert order.index("answer") < order.index("end")
    assert "".join(delta["content"] or "" for delta in deltas).startswith("Answer to: ")


@pytest.mark.thorough
async def test_an_image_reaches_the_model(chat: openai.AsyncOpenAI, openai_server: OpenAIServer) -> None:
    before, pixel = len(openai_server.requests), "data:image/png;base64,iVBORw0KGgo="
    parts: Any = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": pixel}}]
    await chat.chat.completions.create(model="chain_of_thought", messages=[{"role": "user", "content": parts}])
    assert pixel in str(openai_server.requests[before])
