"""The scripted chat model: what a script sees, what its replies become, and what is counted."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any, TypedDict, cast

import pytest
from langchain_core.exceptions import ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import ensure_config
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import ValidationError

from reflective_agents.state.schemas import Critique, Judgement
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request, ToolUse

JUDGEMENT = {"reasoning": "Supported.", "score": 0.5, "solved": False}


@tool
def search(query: str) -> str:
    """Search for a query."""
    return query


def echo(request: Request) -> Reply:
    return f"re: {request.last}"


def candidates(result: LLMResult) -> list[AIMessage]:
    messages = [cast("ChatGeneration", generation).message for generation in result.generations[0]]
    return [message for message in messages if isinstance(message, AIMessage)]


def always(reply: Any) -> FakeChatModel:
    return FakeChatModel(reply=lambda request: reply)


def test_text_is_the_answer() -> None:
    assert FakeChatModel(reply=echo).invoke("hi").content == "re: hi"


async def test_a_script_sees_what_is_asked() -> None:
    model = FakeChatModel(reply=echo, seed=7)
    await model.bind_tools([search, Critique], tool_choice="auto").ainvoke(
        [SystemMessage("Be brief."), ("human", "hi")]
    )
    (request,) = model.calls
    assert request.text == "Be brief.\nhi"
    assert (request.last, request.tools, request.tool_choice) == ("hi", ("search", "Critique"), "auto")
    assert (request.schema, request.n, request.seed, request.index, request.attempt) == (None, 1, 7, 0, 0)
    assert request.schemas["search"]["required"] == ["query"]


@pytest.mark.parametrize(
    ("tools", "choice", "schema"),
    [
        ([search], "any", "search"),
        ([search], True, "search"),
        ([search], "required", "search"),
        ([search, Critique], "required", None),
        ([search, Critique], "Critique", "Critique"),
        ([search, Critique], {"type": "function", "function": {"name": "search"}}, "search"),
        ([search], None, None),
        ([search], "none", None),
    ],
)
async def test_the_schema_is_the_one_forced_tool(tools: list[Any], choice: Any, schema: str | None) -> None:
    model = FakeChatModel(reply=echo)
    await model.bind_tools(tools, tool_choice=choice).ainvoke("hi")
    assert model.calls[0].schema == schema


@pytest.mark.parametrize("reply", [JUDGEMENT, Judgement.model_validate(JUDGEMENT), ToolUse("Judgement", JUDGEMENT)])
async def test_a_forced_schema_is_filled(reply: Reply) -> None:
    judged = await always(reply).with_structured_output(Judgement).ainvoke("Judge.")
    assert judged == Judgement.model_validate(JUDGEMENT)


async def test_a_reply_that_does_not_fit_is_reported_beside_the_raw_message() -> None:
    model = always({"wrong": 1}).with_structured_output(Judgement, include_raw=True)
    answer: dict[str, Any] = await model.ainvoke("Judge.")  # type: ignore[assignment]
    assert isinstance(answer["parsing_error"], ValidationError)
    assert answer["raw"].tool_calls[0]["args"] == {"wrong": 1}


async def test_arguments_without_a_forced_schema_are_a_mistake_of_the_script() -> None:
    with pytest.raises(TypeError, match="reply ToolUse"):
        await always(JUDGEMENT).ainvoke("hi")


async def test_tool_calls_have_their_own_ids() -> None:
    model = always([ToolUse("search", {"query": "a"}), ToolUse("search", {"query": "b"})]).bind_tools([search])
    messages = [await model.ainvoke("hi"), await model.ainvoke("hi")]
    calls = [call for message in messages for call in message.tool_calls]
    assert [call["args"]["query"] for call in calls] == ["a", "b", "a", "b"]
    assert len({call["id"] for call in calls}) == 4


async def test_arguments_that_are_not_json_are_an_invalid_call() -> None:
    message = await always(ToolUse("search", '{"que')).bind_tools([search]).ainvoke("hi")
    assert message.tool_calls == []
    assert message.invalid_tool_calls[0]["args"] == '{"que'


async def test_a_ready_message_is_given_a_usage_and_otherwise_kept() -> None:
    ready = AIMessage("Paris", additional_kwargs={"refusal": None})
    message = await always(ready).ainvoke("hi")
    assert (message.content, message.additional_kwargs) == ("Paris", {"refusal": None})
    assert message.usage_metadata is not None
    assert ready.usage_metadata is None


@pytest.mark.parametrize("streamed", [False, True])
async def test_errors_are_raised(streamed: bool) -> None:
    model = always(ModelRateLimitError("slow down"))
    with pytest.raises(ModelRateLimitError, match="slow down"):
        await anext(model.astream("hi")) if streamed else await model.ainvoke("hi")
    assert model.in_flight == 0


async def test_faults_can_pass_because_a_script_knows_the_attempt() -> None:
    model = FakeChatModel(reply=lambda request: ModelRateLimitError("no") if request.attempt < 2 else "yes")
    for _ in range(2):
        with pytest.raises(ModelRateLimitError):
            await model.ainvoke([HumanMessage("hi", id="1")])
    assert (await model.ainvoke([HumanMessage("hi", id="another id")])).content == "yes"
    with pytest.raises(ModelRateLimitError):
        await model.ainvoke("something else")
    assert [call.attempt for call in model.calls] == [0, 1, 2, 0]


async def test_n_candidates_carry_the_usage_of_the_whole_call() -> None:
    model = FakeChatModel(reply=lambda request: "x" * 4 * request.index, n=3)
    result = await model.agenerate([[HumanMessage("12345678")]])
    messages = candidates(result)
    assert [message.content for message in messages] == ["", "xxxx", "xxxxxxxx"]
    usage = {"input_tokens": 3, "output_tokens": 1 + 2 + 3, "total_tokens": 9}
    assert [message.usage_metadata for message in messages] == [usage] * 3
    assert result.llm_output is not None
    assert result.llm_output["token_usage"] == {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9}
    assert len(model.calls) == 1


async def test_a_list_of_replies_is_one_for_each_candidate() -> None:
    model = always(["a", ToolUse("search", {"query": "b"})])
    messages = candidates(await model.agenerate([[HumanMessage("hi")]], n=3))
    assert [(message.content, len(message.tool_calls)) for message in messages] == [("a", 0), ("", 1), ("a", 0)]


def test_support_of_n_shows_in_the_fields() -> None:
    assert "n" in FakeChatModel.model_fields
    assert "n" not in FakeChatModelWithoutN.model_fields
    with pytest.raises(TypeError, match="'n'"):
        FakeChatModelWithoutN(reply=echo).invoke("hi", n=2)


async def test_seed_and_max_tokens_of_a_call_replace_those_of_the_model() -> None:
    model = FakeChatModel(reply=lambda request: "x" * 100, seed=1, max_tokens=10)
    first, second = await model.ainvoke("hi"), await model.ainvoke("hi", seed=2, max_tokens=2)
    assert [call.seed for call in model.calls] == [1, 2]
    assert [len(str(message.content)) for message in (first, second)] == [39, 7]
    assert first.response_metadata["finish_reason"] == "length"
    assert first.usage_metadata is not None
    assert first.usage_metadata["output_tokens"] == 10


async def test_max_tokens_cut_tool_arguments_too() -> None:
    message = await always({**JUDGEMENT}).bind_tools([Judgement], tool_choice="any").ainvoke("hi", max_tokens=3)
    assert message.invalid_tool_calls[0]["args"] == '{"reasoning'


async def test_an_answer_ends_where_it_is_told_to_stop() -> None:
    assert (await always("Thought: a\nObservation: b").ainvoke("hi", stop=["\nObservation"])).content == "Thought: a"


async def test_streaming_gives_words_and_the_usage_last() -> None:
    chunks = [chunk async for chunk in always("one two  three").astream("hi")]
    assert [chunk.content for chunk in chunks] == ["one ", "two  ", "three", ""]
    assert [chunk.usage_metadata is not None for chunk in chunks] == [False, False, False, True]
    assert chunks[-1].response_metadata["finish_reason"] == "stop"


async def test_streamed_tool_calls_add_up() -> None:
    model = always([ToolUse("search", {"query": "a b"}), ToolUse("search", {"query": "c"})]).bind_tools([search])
    reply = await model.ainvoke("other")
    chunks = [chunk async for chunk in model.astream("hi")]
    streamed = add_ai_message_chunks(*[chunk for chunk in chunks if isinstance(chunk, AIMessageChunk)])
    assert [call["args"] for call in streamed.tool_calls] == [call["args"] for call in reply.tool_calls]


def test_synchronous_streaming() -> None:
    assert "".join(str(chunk.content) for chunk in always("one two").stream("hi")) == "one two"


def test_waves_and_calls_in_flight_are_counted() -> None:
    model = FakeChatModel(reply=echo, latency=lambda request: 1)

    async def twice_five() -> None:
        for _ in range(2):
            await asyncio.gather(*(model.ainvoke(f"{number}") for number in range(5)))

    assert virtually(twice_five()) == (None, 2)
    assert (len(model.calls), model.max_in_flight, model.waves, model.in_flight) == (10, 5, 2, 0)


async def test_a_cancelled_call_is_no_longer_in_flight() -> None:
    begun = asyncio.Event()

    def a_minute(request: Request) -> float:
        begun.set()
        return 60

    model = FakeChatModel(reply=echo, latency=a_minute)
    call = asyncio.create_task(model.ainvoke("hi"))
    await begun.wait()
    assert model.in_flight == 1
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert model.in_flight == 0


def test_attempts_are_counted_across_threads() -> None:
    model = FakeChatModel(reply=echo)
    threads = [threading.Thread(target=model.batch, args=(["hi"] * 10,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(call.attempt for call in model.calls) == list(range(50))


CALL = AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}])
BROKEN = AIMessage("", invalid_tool_calls=[{"name": "search", "args": "{", "id": "1", "error": None}])


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [HumanMessage("hi"), CALL],
        [HumanMessage("hi"), BROKEN],
        [HumanMessage("hi"), CALL, HumanMessage("hello?"), ToolMessage("late", tool_call_id="1")],
        [HumanMessage("hi"), ToolMessage("uncalled", tool_call_id="1")],
        [HumanMessage("hi"), CALL, ToolMessage("a", tool_call_id="1"), ToolMessage("twice", tool_call_id="1")],
    ],
)
async def test_conversations_that_a_provider_refuses_are_refused(messages: list[AnyMessage]) -> None:
    with pytest.raises(ModelInvalidRequestError):
        await FakeChatModel(reply=echo).ainvoke(messages)


@pytest.mark.parametrize("call", [CALL, BROKEN])
async def test_answered_calls_are_accepted(call: AIMessage) -> None:
    model = FakeChatModel(reply=echo)
    assert (await model.ainvoke([HumanMessage("hi"), call, ToolMessage("found", tool_call_id="1")])).text == "re: found"


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


async def texts_of_a_graph(model: FakeChatModel, **kwargs: Any) -> list[str]:
    async def answer(state: State) -> State:
        result = await model.agenerate([[*state["messages"]]], callbacks=ensure_config()["callbacks"], **kwargs)
        return {"messages": [*candidates(result)]}

    builder = StateGraph(State).add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END)
    stream: AsyncIterator[Any] = builder.compile().astream({"messages": [HumanMessage("hi")]}, stream_mode="messages")
    return [chunk.content async for chunk, _ in stream]


async def test_a_graph_streams_its_words() -> None:
    assert await texts_of_a_graph(always("one two")) == ["one ", "two", ""]


async def test_a_streamed_call_interleaves_its_candidates_unless_told_not_to_stream() -> None:
    model = FakeChatModel(reply=lambda request: f"{request.index}a {request.index}b ")
    assert "".join(await texts_of_a_graph(model, n=2)) == "0a 1a 0b 1b "
    assert await texts_of_a_graph(model, n=2, stream=False) == ["0a 0b ", "1a 1b "]
