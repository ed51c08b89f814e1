"""OpenAI's own client on /v1/responses."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from langgraph_sdk.client import LangGraphClient
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
