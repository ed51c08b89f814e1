"""Every strategy at the end of a thread that its model does not hold: it answers, and the limits hold."""

import asyncio
import itertools
import re
from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from bench.long_threads import LENGTHS, RECORD, WINDOWS, Met, long_thread, meet, recording
from reflective_agents.nodes.asking.kept import forget_summaries
from reflective_agents.testing.awkward import AwkwardServer
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies import QUESTION, STRATEGIES, Result, Strategy, every_case, every_strategy, thread

pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("provider")]
REACT = next(strategy for strategy in STRATEGIES if strategy.name == "react")


def check(met: Met, length: int) -> None:
    result, settings = met.result, met.server
    assert result["answer"], result["outcome"]
    assert result["outcome"]["status"] != "failed"
    assert len(result["messages"]) == length + 2  # the thread stays whole
    assert result["usage"]["model_calls"] == len(settings.requests)
    assert result["usage"]["total_tokens"] <= 1_000_000


@pytest.mark.matrix
@every_strategy
async def test_a_thread_that_is_too_long_is_compacted(strategy: Strategy) -> None:
    met = await meet(strategy, 60, 4_096)
    check(met, 60)
    assert met.compactions
    assert all(event["tokens_after"] < event["tokens_before"] for event in met.compactions)


@pytest.mark.thorough
@pytest.mark.timeout(300)
@every_case("size", itertools.product(LENGTHS, WINDOWS))
async def test_no_thread_is_too_long(strategy: Strategy, size: tuple[int, int]) -> None:
    length, window = size
    check(await meet(strategy, length, window), length)


@pytest.mark.thorough
@every_case("size", [(60, 4_096), (200, 8_192)], turns=2)
async def test_a_server_that_names_no_size_is_tried_with_less(strategy: Strategy, size: tuple[int, int]) -> None:
    length, window = size
    met = await meet(strategy, length, window, too_long="words")
    check(met, length)
    assert met.compactions
    assert sum(call.fault is not None for call in met.server.requests) <= 8


@pytest.mark.thorough
@pytest.mark.timeout(300)
@every_case("length", LENGTHS)
async def test_a_server_that_cuts_silently_is_told(strategy: Strategy, length: int) -> None:
    met = await meet(strategy, length, 4_096, cuts=True)
    check(met, length)
    assert not met.server.cut or [event for event in met.events if event["event"] == "prompt_cut"]
    met = await meet(strategy, length, 4_096, cuts=True, context_window=4_096)
    check(met, length)
    assert not met.server.cut


@pytest.mark.thorough
async def test_a_silent_cut_is_an_event_that_names_the_setting() -> None:
    met = await meet(REACT, 200, 4_096, cuts=True)
    [event] = [event for event in met.events if event["event"] == "prompt_cut"]
    assert event["setting"] == "context_window"
    assert event["reported"] < event["expected"] / 2
    met = await meet(REACT, 200, 4_096, cuts=True, context_window=4_096)
    assert not met.server.cut
    assert met.compactions


@pytest.mark.thorough
async def test_later_questions_extend_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = REACT.with_memory(InMemorySaver())
    async with AwkwardServer(recording(REACT.solving), "small_context", context=4_096) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        await say(graph, *long_thread(60), HumanMessage(QUESTION))
        first = graph.get_state(thread()).values["compaction"]
        read = len(records(server))
        result = await say(graph, HumanMessage(f"{QUESTION} Again?"))
        assert graph.get_state(thread()).values["compaction"] == first  # the beginning of the prompts stays the same
        assert len(records(server)) == read
        assert RECORD in server.calls[-1].text
        for number in range(10):
            result = await say(graph, *long_thread(4), HumanMessage(f"{QUESTION} {number}"))
            assert result["outcome"]["status"] == "answered"
        later = graph.get_state(thread()).values["compaction"]
    assert later["messages"] > first["messages"]
    extended = records(server)[read:]
    assert 1 <= len(extended) < 10
    assert all(RECORD in text for text in extended)  # and nothing is read again
    assert not [text for text in extended if "town 7," in text.partition("</summary>")[2][:400]]


async def say(graph: object, *messages: AnyMessage, name: str = "t") -> Result:
    context = REACT.make(model="openai:test", search="none")
    return await graph.ainvoke({"messages": [*messages]}, thread(name), context=context)  # type: ignore[attr-defined,no-any-return]


def records(server: AwkwardServer) -> list[str]:
    return [call.text for call in server.calls if "Write the new record" in call.last]


async def test_threads_keep_their_own_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = REACT.with_memory(InMemorySaver())
    async with AwkwardServer(recording(REACT.solving), "small_context", context=4_096) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        await say(graph, *long_thread(60), HumanMessage(QUESTION))
        await say(graph, HumanMessage(QUESTION), name="another")
    assert graph.get_state(thread()).values["compaction"]
    assert not graph.get_state(thread("another")).values.get("compaction")
    assert RECORD not in server.calls[-1].text


async def test_a_history_that_is_sent_anew_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    history: list[AnyMessage] = [*long_thread(60), HumanMessage(QUESTION)]
    async with AwkwardServer(recording(REACT.solving), "small_context", context=4_096) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        read = []
        for _ in range(4):
            sent: list[AnyMessage] = [message.model_copy(update={"id": None}) for message in history]
            out = await say(REACT.graph, *sent)
            read.append(len(records(server)))
            history += [AIMessage(out["answer"]), HumanMessage(f"{QUESTION} Again?")]
        assert RECORD in server.calls[-1].text
        await say(REACT.graph, HumanMessage("Not so."), *sent)
    assert read[0] == read[-1] > 0
    assert len(records(server)) > read[-1]


async def test_a_run_that_is_cancelled_does_not_read_again_what_is_summarised(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, answering = REACT.with_memory(InMemorySaver()), asyncio.Event()

    def reply(request: Request) -> Reply | Sequence[Reply]:
        if "Write the new record" not in request.last:
            answering.set()
        return recording(REACT.solving)(request)

    async with AwkwardServer(reply, "small_context", context=4_096) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = asyncio.create_task(say(graph, *long_thread(60), HumanMessage(QUESTION)))
        await answering.wait()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        read = len(records(server))
        assert read
        context = REACT.make(model="openai:test", search="none")
        result = await graph.ainvoke(None, thread(), context=context)
    assert result["outcome"]["status"] == "answered"
    assert len(records(server)) == read


@pytest.mark.thorough
async def test_a_run_that_is_cancelled_while_it_summarises_makes_no_call_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, read = REACT.with_memory(InMemorySaver()), list[str]()

    def reply(request: Request) -> Reply | Sequence[Reply]:
        if "Write the new record" in request.last:
            read.append(request.last)
            if len(read) == 4:
                run.cancel()
        return recording(REACT.solving)(request)

    async with AwkwardServer(reply, "small_context", context=4_096) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = asyncio.create_task(say(graph, *long_thread(200), HumanMessage(QUESTION)))
        await asyncio.gather(run, return_exceptions=True)
        forget_summaries()  # as if another process resumed it
        context = REACT.make(model="openai:test", search="none")
        result = await graph.ainvoke(None, thread(), context=context)
    assert result["outcome"]["status"] == "answered"
    assert result["usage"]["model_calls"] == len(server.requests)
    before, after = ({*re.findall(r"In (\d+) we planned", " ".join(prompts))} for prompts in (read[:3], read[4:]))
    assert before
    assert after
    assert len(before & after) <= 2  # a turn that two calls have read in part


async def test_a_run_that_was_killed_goes_on_with_its_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = REACT.with_memory(InMemorySaver())
    async with AwkwardServer(recording(REACT.solving), "small_context", context=4_096) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        inputs = {"messages": [*long_thread(60), HumanMessage(QUESTION)]}
        context = REACT.make(model="openai:test", search="none")
        async for update in graph.astream(inputs, thread(), context=context, stream_mode="updates", durability="sync"):
            if "compaction" in next(iter(update.values())):
                break
        read = len(records(server))
        result = await graph.ainvoke(None, thread(), context=context)
    assert result["outcome"]["status"] == "answered"
    assert len(records(server)) == read


@tool
def approve(journey: str) -> str:
    """Ask a person whether a journey is approved."""
    return str(interrupt(journey))


async def test_a_tool_that_asks_a_person_and_a_fork_leave_the_summary_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = REACT.with_memory(InMemorySaver())

    def reply(request: Request) -> Reply:
        if "Write the new record" in request.last:
            return RECORD
        is_answered = any(message.type == "tool" for message in request.messages)
        return "Approved." if is_answered else ToolUse("approve", {"journey": "1"})

    async with AwkwardServer(reply, "small_context", context=4_096) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        context = REACT.make(model="openai:test", search="none", tools=[approve])
        inputs = {"messages": [*long_thread(60), HumanMessage("May I?")]}
        paused = await graph.ainvoke(inputs, thread(), context=context)
        assert paused["__interrupt__"]
        forget_summaries()
        read, sent = len(records(server)), len(server.requests)
        result = await graph.ainvoke(Command(resume="yes"), thread(), context=context)
        history = [state async for state in graph.aget_state_history(thread())]
        fork = next(state for state in history if state.next == ("think",) and state.values["steps"])
        again = await graph.ainvoke(None, fork.config, context=context)
    assert sent == paused["usage"]["model_calls"]
    assert result["answer"] == again["answer"] == "Approved."
    assert len(records(server)) == read


async def test_a_conversation_in_chinese_is_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = long_thread(120, "我们决定在二〇二六年三月{number}日去北京，预算是一千元，小王同意了。" * 3)
    async with AwkwardServer(recording(REACT.solving), "small_context", context=4_096) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        result = await say(REACT.with_memory(), *turns, HumanMessage(QUESTION))
    assert result["answer"]
    assert records(server)


async def test_a_conversation_is_sent_as_it_is_where_compacting_is_off() -> None:
    met = await meet(REACT, 60, 4_096, compact="off")
    assert met.result["outcome"]["status"] == "failed"
    assert "compact=auto" in met.result["outcome"]["reason"]
    assert not met.compactions


@pytest.mark.thorough
async def test_a_compaction_stays_within_its_share() -> None:
    met = await meet(REACT, 200, 4_096, max_model_calls=20, compact_share=0.1)
    check(met, 200)
    assert met.compactions[0]["calls"] <= 2
