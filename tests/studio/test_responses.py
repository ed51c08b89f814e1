"""OpenAI's own client on /v1/responses."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError
from pydantic import BaseModel

from reflective_agents.testing.openai_server import OpenAIServer

pytestmark = [pytest.mark.studio, pytest.mark.xdist_group("studio")]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {"type": "function", "name": "weather", "parameters": CITY, "strict": False}
ASK: Any = {"role": "user", "content": "How warm is it there? weather for two"}


@pytest.fixture
async def responses(address: str) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as client:
        yield client.responses


async def test_a_response(responses: Any, openai_server: OpenAIServer) -> None:
    before = len(openai_server.requests)
    response = await responses.create(model="reflection", input="Why?", extra_body={"settings": {"max_rounds": 2}})
    assert (response.status, response.output_text) == ("completed", "Answer to: Why?")
    assert "critique: round=1" in response.output[0].summary[0].text
    assert response.usage.model_dump()["model_calls"] == len(openai_server.requests) - before == 2
    assert response.usage.total_tokens == sum(call.tokens for call in openai_server.requests[before:])


async def test_a_stream_read_by_openais_own_helper(responses: Any) -> None:
    async with responses.stream(model="reflection", input="Why?") as stream:
        kinds = [event.type async for event in stream]
        response = await stream.get_final_response()
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert response.output_text == "Answer to: Why?"


@pytest.mark.thorough
async def test_several_responses_may_follow_the_same(
    responses: Any, client: LangGraphClient, openai_server: OpenAIServer
) -> None:
    first = await responses.create(model="chain_of_thought", input="Why?", instructions="Be brief.")
    for question, instructions in (("Why not?", None), ("How?", "Be long.")):
        following = await responses.create(
            model="chain_of_thought", input=question, instructions=instructions, previous_response_id=first.id
        )
        assert following.previous_response_id == first.id
        shown = str(openai_server.requests[-1])
        assert "Why?" in shown
        assert ("Be brief." in shown, "Be long." in shown) == (False, instructions is not None)
    values: Any = (await client.threads.get_state(first.thread_id))["values"]
    questions = [message["content"] for message in values["messages"] if message["type"] == "human"]
    assert questions == ["Why?", "How?"]


@pytest.mark.thorough
async def test_what_follows_nothing_is_refused(responses: Any) -> None:
    first = await responses.create(model="chain_of_thought", input="Why?")
    with pytest.raises(openai.BadRequestError):
        await responses.create(model="reflection", input="Why?", previous_response_id=first.id)
    waiting = await responses.create(model="react", input=[ASK], tools=[WEATHER])
    with pytest.raises(openai.BadRequestError):
        await responses.create(model="react", input="Why?", tools=[WEATHER], previous_response_id=waiting.id)
    lost = await responses.create(model="chain_of_thought", input="Why?", store=False)
    for _ in range(2):  # the thread may still be on its way out
        with pytest.raises(openai.APIStatusError):
            await responses.create(model="react", input="Why?", previous_response_id=lost.id)


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["previous_response_id", "items", "references"])
async def test_a_client_carries_its_tools_out(responses: Any, how: str) -> None:
    first = await responses.create(model="react", input=[ASK], tools=[WEATHER])
    calls = [item for item in first.output if item.type == "function_call"]
    assert [call.name for call in calls] == ["weather", "weather"]
    results: list[Any] = [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"20 degrees: {call.arguments}"}
        for call in calls
    ]
    by_value = [item.model_dump(exclude_none=True) for item in first.output]
    by_reference = [{"type": "item_reference", "id": item.id} for item in first.output]
    brought = {"previous_response_id": [], "items": [ASK, *by_value], "references": [ASK, *by_reference]}[how]
    previous = first.id if how == "previous_response_id" else None
    second = await responses.create(
        model="react", input=[*brought, *results], tools=[WEATHER], previous_response_id=previous
    )
    assert second.output_text.count("20 degrees") == 2
    history = [*brought, *results, {"type": "item_reference", "id": second.output[-1].id}, ASK]
    if how != "previous_response_id":
        third = await responses.create(model="chain_of_thought", input=history)
        assert (third.status, bool(third.output_text)) == ("completed", True)


@pytest.mark.thorough
async def test_an_answer_in_a_form(responses: Any) -> None:
    class City(BaseModel):
        city: str

    response = await responses.parse(model="chain_of_thought", input="Where?", text_format=City)
    assert isinstance(response.output_parsed, City)


async def test_an_error_has_openais_form(responses: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await responses.create(model="react", input="Why?", tools=[{"type": "web_search"}])
    assert refused.value.param == "tools"
    with pytest.raises(openai.NotFoundError):
        await responses.create(model="latz", input="Why?")


@pytest.mark.thorough
async def test_a_stored_response_is_fetched_as_it_was_answered(responses: Any) -> None:
    first = await responses.create(model="reflection", input="Why?", instructions="Be brief.", metadata={"a": "b"})
    await responses.create(model="reflection", input="How?", previous_response_id=first.id)
    assert (await responses.retrieve(first.id)).model_dump() == {
        **first.model_dump(),
        "completed_at": (await responses.retrieve(first.id)).completed_at,
    }
    [item] = (await responses.input_items.list(first.id)).data
    assert (item.role, item.content[0].text) == ("user", "Why?")


@pytest.mark.thorough
async def test_a_stream_is_taken_up_after_any_of_its_events(responses: Any) -> None:
    stream = await responses.create(model="chain_of_thought", input="Why?", stream=True)
    events = [event async for event in stream]
    key = events[0].response.id
    for after in (None, 0, 7, len(events) - 1):
        rest = await responses.retrieve(key, stream=True, **({} if after is None else {"starting_after": after}))
        numbers = [event.sequence_number async for event in rest]
        assert numbers == [*range(0 if after is None else after + 1, len(events))]
    again = [event async for event in await responses.retrieve(key, stream=True)]
    assert [event.type for event in again] == [event.type for event in events]
    assert again[-1].response.output == events[-1].response.output


@pytest.mark.thorough
async def test_calls_that_were_answered_are_fetched_with_what_each_has_cost(responses: Any) -> None:
    first = await responses.create(model="react", input=[ASK], tools=[WEATHER])
    results: list[Any] = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "20 degrees"}
        for item in first.output
        if item.type == "function_call"
    ]
    second = await responses.create(model="react", input=results, tools=[WEATHER], previous_response_id=first.id)
    for response in (first, second):
        found = await responses.retrieve(response.id)
        assert (found.output, found.usage, found.status) == (response.output, response.usage, "completed")
    listed = await responses.input_items.list(second.id, order="asc", limit=1)
    assert ([item.call_id for item in listed.data], listed.has_more) == ([results[0]["call_id"]], True)


@pytest.mark.thorough
async def test_a_response_in_the_background_goes_on_alone(responses: Any) -> None:
    waiting = await responses.create(model="reflection", input="A slow one.", background=True)
    assert (waiting.status, waiting.output) == ("queued", [])
    assert (await responses.retrieve(waiting.id)).status in ("queued", "in_progress")
    while (response := await responses.retrieve(waiting.id)).status in ("queued", "in_progress"):  # noqa: ASYNC110 # of the server
        await asyncio.sleep(0.2)
    assert (response.status, response.output_text) == ("completed", "Answer to: A slow one.")
    assert (await responses.cancel(waiting.id)).status == "completed"


@pytest.mark.thorough
async def test_a_response_in_the_background_is_cancelled(responses: Any, openai_server: OpenAIServer) -> None:
    stream = await responses.create(model="lats", input="A slow, unsolvable one.", background=True, stream=True)
    key = (await anext(aiter(stream))).response.id
    await stream.close()
    await asyncio.sleep(0.5)
    assert (await responses.retrieve(key)).status in ("queued", "in_progress")
    assert (await responses.cancel(key)).status == "cancelled"
    seen = len(openai_server.requests)
    assert (await responses.retrieve(key)).status == "cancelled"
    await asyncio.sleep(0.5)
    assert len(openai_server.requests) == seen
    first = await responses.create(model="chain_of_thought", input="Why?")
    with pytest.raises(openai.BadRequestError):
        await responses.cancel(first.id)


@pytest.mark.thorough
async def test_the_last_response_takes_its_thread_along(responses: Any, client: LangGraphClient) -> None:
    first = await responses.create(model="chain_of_thought", input="Why?")
    second = await responses.create(model="chain_of_thought", input="How?", previous_response_id=first.id)
    await responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        await responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        await responses.create(model="chain_of_thought", input="Why?", previous_response_id=first.id)
    third = await responses.create(model="chain_of_thought", input="And?", previous_response_id=second.id)
    for response in (second, third):
        assert await client.threads.get(response.thread_id)
        await responses.delete(response.id)
    with pytest.raises(NotFoundError):
        await client.threads.get(first.thread_id)
