"""The contract that every strategy keeps: what goes in, what comes out, and what never does."""

import asyncio
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer
from tests.strategies import (
    ASK,
    QUESTION,
    STRATEGIES,
    Result,
    Strategy,
    every_case,
    every_strategy,
    marks,
    ring,
    thread,
)

pytestmark = pytest.mark.matrix(over="strategy", keep=2)

CONTRACT = ("messages", "answer", "outcome", "usage")


_solved: dict[str, tuple[Result, FakeChatModel]] = {}


async def solve(strategy: Strategy, given: dict[str, Any] = ASK) -> tuple[Result, FakeChatModel]:
    model = FakeChatModel(reply=strategy.solving)
    result: Result = await strategy.graph.ainvoke(given, context=strategy.make(model=model))
    return result, model


async def solved(strategy: Strategy) -> tuple[Result, FakeChatModel]:
    """A run that several tests look at, each for something else."""
    key = f"{strategy.name} {strategy.settings}"
    if key not in _solved:
        _solved[key] = await solve(strategy)
    return _solved[key]


def texts(messages: list[AnyMessage]) -> list[str]:
    return [message.text for message in messages]


def assert_final(messages: list[AnyMessage]) -> AIMessage:
    """The last message is an answer that leaves nothing open."""
    final = messages[-1]
    assert isinstance(final, AIMessage)
    assert final.text.strip()
    assert (final.tool_calls, final.invalid_tool_calls) == ([], [])
    return final


# In and out


GIVEN: dict[str, list[Any]] = {
    "tuple": [("user", QUESTION)],
    "dict": [{"role": "user", "content": QUESTION}],
    "object": [HumanMessage(QUESTION, id="mine")],
    "blocks": [HumanMessage([{"type": "text", "text": QUESTION}])],
    "conversation": [("system", "Be brief."), ("user", "Hi."), ("assistant", "Hello, what is it?"), ("user", QUESTION)],
    "system": [SystemMessage("Be brief."), HumanMessage(QUESTION)],
}


@every_case("kind", GIVEN)
async def test_one_answer_follows_the_messages_given(strategy: Strategy, kind: str) -> None:
    messages = GIVEN[kind]
    result, _ = await solve(strategy, {"messages": messages})
    assert len(result["messages"]) == len(messages) + 1
    assert result["messages"][-2].text == QUESTION
    assert assert_final(result["messages"]).text == result["answer"]
    assert "[alpha]" in result["answer"]


@every_strategy
async def test_messages_given_are_neither_changed_nor_replaced(strategy: Strategy) -> None:
    given = [SystemMessage("Be brief.", id="s"), HumanMessage(QUESTION, id="h", additional_kwargs={"a": 1})]
    before = [message.model_dump() for message in given]
    result, _ = await solve(strategy, {"messages": given})
    assert [message.model_dump() for message in given] == before
    assert [message.model_dump() for message in result["messages"][:2]] == before


@every_strategy
async def test_the_result_has_answer_outcome_usage_and_artefact_and_nothing_else(strategy: Strategy) -> None:
    result, _ = await solved(strategy)
    assert set(result) - {"support"} == {*CONTRACT, *strategy.keys}
    assert (result["outcome"]["status"], result["outcome"].get("verified_by")) == (
        strategy.status,
        strategy.verified_by,
    )
    assert re.search(r"\w+", result["outcome"]["reason"])
    assert all(result[name] for name in strategy.artefact)


@every_strategy
async def test_usage_counts_what_the_model_was_asked(strategy: Strategy) -> None:
    result, model = await solved(strategy)
    usage = result["usage"]
    assert usage["model_calls"] == len(model.calls) >= strategy.calls
    assert (usage["failed_calls"], usage["parse_failures"], usage["tool_errors"]) == (0, 0, 0)
    assert usage["input_tokens"] == sum(len(request.text) // 4 + 1 for request in model.calls)
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert 0 < usage["output_tokens"] < usage["input_tokens"]


@every_strategy
async def test_scratch_work_is_not_in_the_messages(strategy: Strategy) -> None:
    result, _ = await solved(strategy)
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    assert "<critique>" not in " ".join(texts(result["messages"]))


@every_strategy
async def test_a_question_that_looks_like_a_template_or_like_markup_is_taken_as_it_is(strategy: Strategy) -> None:
    question = "What do {conversation}, {{x}}, %s and </request></conversation> mean? [alpha]"
    result, model = await solve(strategy, {"messages": [("user", question)]})
    assert result["outcome"]["status"] == strategy.status
    assert result["messages"][0].text == question
    assert question in model.calls[0].text


# Threads


@every_strategy
async def test_a_second_question_on_a_thread_is_a_turn_of_its_own(strategy: Strategy) -> None:
    graph, model = strategy.with_memory(), FakeChatModel(reply=strategy.solving)
    context = strategy.make(model=model)
    first = await graph.ainvoke(ASK, thread(), context=context)
    calls = len(model.calls)
    second = await graph.ainvoke({"messages": [("user", "And why not? [beta]")]}, thread(), context=context)
    assert texts(second["messages"]) == [QUESTION, first["answer"], "And why not? [beta]", second["answer"]]
    assert "[beta]" in second["answer"]
    assert "[alpha]" not in second["answer"]
    assert first["answer"] in model.calls[calls].text
    assert second["usage"]["model_calls"] == len(model.calls) - calls >= strategy.calls
    assert second["usage"]["total_tokens"] < first["usage"]["total_tokens"] * 3
    for name in strategy.artefact:
        assert "[alpha]" not in json.dumps(second[name], default=str)
    assert second["outcome"]["status"] == strategy.status


@every_strategy
async def test_a_turn_that_fails_leaves_a_thread_that_can_go_on(strategy: Strategy) -> None:
    graph = strategy.with_memory()
    broken = FakeChatModel(reply=lambda _: ValueError("out of order"))
    first = await graph.ainvoke(ASK, thread(), context=strategy.make(model=broken, max_model_calls=1))
    assert (first["answer"], first["outcome"]["status"]) == (None, "failed")
    model = FakeChatModel(reply=strategy.solving)
    second = await graph.ainvoke({"messages": [("user", "Again [beta]")]}, thread(), context=strategy.make(model=model))
    assert texts(second["messages"]) == [QUESTION, "Again [beta]", second["answer"]]
    assert second["outcome"]["status"] == strategy.status


@every_strategy
async def test_everything_in_the_state_survives_the_serializer(strategy: Strategy) -> None:
    graph, context = strategy.with_memory(), strategy.make(model=FakeChatModel(reply=strategy.solving))
    result = await graph.ainvoke(ASK, thread(), context=context)
    stored = (await graph.aget_state(thread())).values
    assert {name: stored[name] for name in result} == result
    for message in stored["messages"]:
        assert isinstance(message, HumanMessage | AIMessage)


@every_strategy
async def test_a_run_paused_before_each_node_ends_as_one_that_never_paused(strategy: Strategy) -> None:
    graph, model = strategy.with_memory(), FakeChatModel(reply=strategy.solving)
    context, config = strategy.make(model=model), thread()
    result = await graph.ainvoke(ASK, config, context=context, interrupt_before="*")
    while (await graph.aget_state(config)).next:
        result = await graph.ainvoke(None, config, context=context, interrupt_before="*")
    straight, _ = await solved(strategy)
    assert (result["answer"], result["outcome"]) == (straight["answer"], straight["outcome"])
    assert result["usage"] | {"seconds": 0} == straight["usage"] | {"seconds": 0}
    assert result["usage"]["model_calls"] == len(model.calls)


@every_strategy
def test_runs_at_once_do_not_mix(strategy: Strategy) -> None:
    graph = strategy.with_memory()
    model = FakeChatModel(reply=strategy.solving, latency=1.0)

    async def run(number: int) -> Result:
        given = {"messages": [("user", f"Why? [q{number}]")]}
        result: Result = await graph.ainvoke(given, thread(f"{number}"), context=strategy.make(model=model))
        return result

    async def four() -> list[Result]:
        return await asyncio.gather(*(run(number) for number in range(4)))

    results, _ = virtually(four())
    for number, result in enumerate(results):
        assert marks(result["messages"]) == [f"q{number}"]
        assert f"[q{number}]" in result["answer"]
    assert all(len(marks(request.messages)) == 1 for request in model.calls)
    assert sum(result["usage"]["model_calls"] for result in results) == len(model.calls)
    assert model.max_in_flight > 1


# Calling


@every_strategy
async def test_without_a_context_the_defaults_and_the_environment_hold(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", "offline")
    result = await strategy.graph.ainvoke({"messages": [("user", "Why is reflection useful in AI?")]})
    assert_final(result["messages"])
    assert result["outcome"]["status"] != "failed"
    monkeypatch.setenv("REFLECT_MAX_MODEL_CALLS", "1")
    limited = await strategy.graph.ainvoke({"messages": [("user", "Why is reflection useful in AI?")]})
    assert limited["usage"]["model_calls"] == 1


@every_strategy
async def test_settings_may_be_given_as_plain_data(strategy: Strategy) -> None:
    given = {**strategy.settings, "model": "offline", "max_model_calls": 1}
    result = await strategy.graph.ainvoke(ASK, context=given)
    assert result["usage"]["model_calls"] == 1


def run_invoke(strategy: Strategy, context: Any) -> Result:
    result: Result = strategy.graph.invoke(ASK, context=context)
    return result


def run_stream(strategy: Strategy, context: Any) -> Result:
    result: Result = list(strategy.graph.stream(ASK, context=context, stream_mode="values"))[-1]
    return result


def run_ainvoke(strategy: Strategy, context: Any) -> Result:
    result: Result = asyncio.run(strategy.graph.ainvoke(ASK, context=context))
    return result


def run_astream(strategy: Strategy, context: Any) -> Result:
    async def last() -> Result:
        values = [value async for value in strategy.graph.astream(ASK, context=context, stream_mode="values")]
        return dict(values[-1])

    return asyncio.run(last())


Run = Callable[[Strategy, Any], Result]
RUNS = [run_invoke, run_stream, run_ainvoke, run_astream]


@every_case("pair", itertools.product(RUNS, RUNS), ids=lambda pair: f"{pair[0].__name__}-{pair[1].__name__}")
def test_every_entry_point_works_after_every_other(strategy: Strategy, pair: tuple[Run, Run]) -> None:
    first, second = pair
    model = FakeChatModel(reply=strategy.solving)
    results = [run(strategy, strategy.make(model=model)) for run in (first, second)]
    assert {result["outcome"]["status"] for result in results} == {strategy.status}
    assert {len(result["messages"]) for result in results} == {2}


@pytest.mark.matrix
@pytest.mark.wire
@every_case("second", RUNS, ids=lambda run: run.__name__)
def test_every_entry_point_works_with_a_client_that_keeps_connections(
    strategy: Strategy, second: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer(strategy.solving).threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        for run in (run_ainvoke, second, run_invoke):
            assert run(strategy, strategy.make(model="openai:test"))["outcome"]["status"] == strategy.status


@every_strategy
async def test_invoke_works_where_a_loop_is_running(strategy: Strategy) -> None:
    asyncio.get_running_loop()
    model = FakeChatModel(reply=strategy.solving)
    assert run_invoke(strategy, strategy.make(model=model))["outcome"]["status"] == strategy.status
    assert run_stream(strategy, strategy.make(model=model))["outcome"]["status"] == strategy.status


@every_strategy
def test_threads_may_invoke_at_once(strategy: Strategy) -> None:
    model = FakeChatModel(reply=strategy.solving, latency=0.001)
    batch = strategy.graph.batch([ASK] * 3, context=strategy.make(model=model))
    assert [result["outcome"]["status"] for result in batch] == [strategy.status] * 3


# Streaming


@every_strategy
async def test_updates_name_the_nodes_and_end_with_the_answer(strategy: Strategy) -> None:
    context = strategy.make(model=FakeChatModel(reply=strategy.solving))
    parts = [part async for part in strategy.graph.astream(ASK, context=context, stream_mode="updates")]
    assert {name for part in parts for name in part} <= set(strategy.graph.nodes)
    (last,) = parts[-1].values()
    assert last["answer"] == assert_final(last["messages"]).text
    assert [part for part in parts[:-1] for update in part.values() if update.get("messages")] == []


@every_strategy
async def test_values_end_with_the_contract_and_earlier_ones_do_not_change_under_the_readers_hands(
    strategy: Strategy,
) -> None:
    context = strategy.make(model=FakeChatModel(reply=strategy.solving))
    seen = []
    async for part in strategy.graph.astream(ASK, context=context, stream_mode="values"):
        seen.append((part, json.dumps(part, default=str)))
    assert [json.dumps(part, default=str) for part, _ in seen] == [then for _, then in seen]
    last, _ = seen[-1]
    assert set(last) >= {*CONTRACT, *strategy.keys}
    assert assert_final(last["messages"]).text == last["answer"]


@every_strategy
async def test_the_messages_stream_brings_the_answer_once_under_its_id_and_no_scratch_work(strategy: Strategy) -> None:
    context = strategy.make(model=FakeChatModel(reply=strategy.solving))
    modes = ["messages", "values"]
    parts = [part async for part in strategy.graph.astream(ASK, context=context, stream_mode=modes)]
    chunks = [part[0] for mode, part in parts if mode == "messages"]
    texts: dict[str, str] = {}
    for chunk in chunks:
        assert chunk.type in ("ai", "AIMessageChunk")
        assert not getattr(chunk, "tool_call_chunks", [])
        assert not chunk.tool_calls
        texts[chunk.id] = texts.get(chunk.id, "") + chunk.text
    answer = (await solved(strategy))[0]["answer"]
    assert list(texts.values()) == [answer]
    assert (len(chunks) > 3) == strategy.streams
    places = [[len("".join(chunk.text for chunk in chunks[:number]))] for number in range(len(chunks))]
    assert not strategy.streams or [chunk.additional_kwargs["offsets"] for chunk in chunks] == places
    mode, last = parts[-1]
    assert mode == "values"
    assert texts[last["messages"][-1].id] == last["messages"][-1].text == answer


@every_strategy
async def test_events_are_numbered_small_and_plain_and_carry_the_cost(strategy: Strategy) -> None:
    model = FakeChatModel(reply=strategy.endless)
    context = strategy.make(model=model)
    events = [part async for part in strategy.graph.astream(ASK, context=context, stream_mode="custom")]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["event"], events[-1]["event"]) == ("begin", "end")
    assert events[0]["strategy"] == strategy.name
    for event in events:
        assert json.loads(json.dumps(event, allow_nan=False)) == event
        assert len(json.dumps(event)) < 2_000
    for cost in ("model_calls", "total_tokens", "seconds"):
        amounts = [event[cost] for event in events]
        assert amounts == sorted(amounts)
    assert events[-1]["model_calls"] == len(model.calls)


@pytest.mark.thorough
@every_strategy
async def test_events_stay_small_when_everything_else_is_large(strategy: Strategy) -> None:
    def verbose(value: Any) -> Any:
        if isinstance(value, str):
            return value + " word" * 2_000
        if isinstance(value, dict):
            return {key: item if key in ("references", "query") else verbose(item) for key, item in value.items()}
        return [verbose(item) for item in value] if isinstance(value, list) else value

    model = FakeChatModel(reply=lambda request: verbose(strategy.endless(request)))
    question = {"messages": [("user", QUESTION + " word" * 2_000)]}
    parts = strategy.graph.astream(question, context=strategy.make(model=model), stream_mode="custom")
    assert [event["event"] async for event in parts if len(json.dumps(event)) >= 2_000] == []


@every_strategy
async def test_events_go_on_counting_after_a_pause_and_a_second_turn_begins_anew(strategy: Strategy) -> None:
    graph, config = strategy.with_memory(), thread()
    context = strategy.make(model=FakeChatModel(reply=strategy.solving))
    numbers: list[int] = []
    given: dict[str, Any] | None = ASK
    while given or (await graph.aget_state(config)).next:
        options: dict[str, Any] = {"context": context, "stream_mode": "custom", "interrupt_after": "*"}
        numbers += [event["seq"] async for event in graph.astream(given, config, **options)]
        given = None
    assert numbers == list(range(1, len(numbers) + 1))
    events = [event async for event in graph.astream(ASK, config, context=context, stream_mode="custom")]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["event"], events[0]["model_calls"], events[0]["total_tokens"]) == ("begin", 0, 0)


# Composition


def within(strategy: Strategy, then: Any) -> Any:
    """A graph with the strategy as its first node."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState, context_schema=strategy.context)
    builder.add_node("answer", strategy.graph)
    builder.add_node("then", then)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "then")
    builder.add_edge("then", END)
    return builder.compile(checkpointer=InMemorySaver())


async def thank(_: MessagesState) -> dict[str, Any]:
    return {"messages": [("user", "Thank you.")]}


@every_strategy
async def test_a_strategy_inside_another_graph_streams_its_answer_once(strategy: Strategy) -> None:
    context = strategy.make(model=FakeChatModel(reply=strategy.solving))
    parts = within(strategy, thank).astream(ASK, thread(), context=context, stream_mode="messages", subgraphs=True)
    texts: dict[str, str] = {}
    async for _, (chunk, _) in parts:
        texts[chunk.id] = texts.get(chunk.id, "") + chunk.text
    answer = (await solved(strategy))[0]["answer"]
    assert list(texts.values()).count(answer) == 1
    assert [text for text in texts.values() if text.count(answer) > 1] == []


@every_strategy
async def test_a_strategy_can_be_a_node_of_another_graph(strategy: Strategy) -> None:
    parent = within(strategy, thank)
    context = strategy.make(model=FakeChatModel(reply=strategy.solving))
    result = await parent.ainvoke(ASK, thread(), context=context)
    assert [message.type for message in result["messages"]] == ["human", "ai", "human"]
    again = await parent.ainvoke({"messages": [("user", "Go on. [beta]")]}, thread(), context=context)
    assert [message.type for message in again["messages"]] == ["human", "ai", "human"] * 2
    assert "[beta]" in again["messages"][-2].text


@pytest.mark.matrix(keep=2)
@ring(0, 1, 5)
async def test_one_strategy_can_follow_another_in_one_graph(strategy: Strategy, other: Strategy) -> None:
    models = {each.name: FakeChatModel(reply=each.solving) for each in (strategy, other)}

    def node(part: Strategy) -> Any:
        async def run(state: MessagesState) -> dict[str, Any]:
            given = {"messages": [*state["messages"], ("user", f"Go on. [{part.name}]")]}
            result = await part.graph.ainvoke(given, context=part.make(model=models[part.name]))
            return {"messages": result["messages"]}

        return run

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    builder.add_node("first", node(strategy))
    builder.add_node("second", node(other))
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    result = await builder.compile().ainvoke({"messages": []})
    assert [message.type for message in result["messages"]] == ["human", "ai"] * 2


@every_strategy
def test_the_drawing_works_offline_and_shows_every_node_and_edge(strategy: Strategy) -> None:
    drawing = strategy.graph.get_graph().draw_mermaid()
    nodes = [name for name in strategy.graph.nodes if name != START]
    assert [name for name in nodes if not re.search(rf"\b{name}\b", drawing)] == []
    assert len(re.findall(r"^\t\w+ -.*;$", drawing, re.MULTILINE)) == len(strategy.graph.get_graph().edges)
    sources, targets = zip(*re.findall(r"(\w+) -.*?> (\w+);", drawing), strict=True)
    assert {"begin", *nodes} <= set(sources)
    assert {*nodes} <= set(targets)
    assert "__end__" in targets


def test_names_and_exports() -> None:
    assert [strategy.graph.name for strategy in STRATEGIES] == [strategy.name for strategy in STRATEGIES]
    assert [strategy.graph.checkpointer for strategy in STRATEGIES] == [None] * len(STRATEGIES)
