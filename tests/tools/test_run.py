"""Tool calls of a message, run inside a graph: each is answered, whatever happens to it."""

import asyncio
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from reflective_agents.state.errors import SearchFailed
from reflective_agents.state.tool_calls import with_call_ids
from reflective_agents.testing.clock import virtually
from reflective_agents.tools.run import run_tool_calls
from reflective_agents.web_search.engines import search_tool
from reflective_agents.web_search.results import SearchResult


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
async def broken(number: int) -> int:
    """Raise an error."""
    raise KeyError(number)


@tool
async def endless(number: int) -> int:
    """Never answer."""
    await asyncio.Event().wait()
    return number


@tool
async def ask(question: str) -> str:
    """Ask the person."""
    return f"The person says {interrupt(question)}."


@tool
async def steer(number: int) -> Command[Any]:
    """Try to steer the graph."""
    return Command(goto="elsewhere")


ENDS: list[BaseException] = [
    BaseException("boo"),
    SystemExit(3),
    asyncio.CancelledError("mine"),
    ValueError("x\ud800\0y"),
]


@tool
def wild(number: int) -> str:
    """Raise what is no plain error, in a thread."""
    raise ENDS[number]


@tool
async def cancelling(number: int) -> str:
    """Cancel itself."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return "no"


@tool
async def leaving(number: int) -> str:
    """End the process, from a coroutine."""
    sys.exit(number)


@tool
def unfit(number: int) -> str:
    """Return what can neither be stored nor sent."""
    return "a\ud800b\0c"


async def nothing(query: str) -> list[SearchResult]:
    raise SearchFailed(f"Nothing about {query}.")


TOOLS: list[BaseTool] = [double, broken, endless, ask, steer, wild, cancelling, leaving, unfit, search_tool(nothing)]


def call(name: str, id: str | None = "1", **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, id=id, type="tool_call")


def garbled(name: str | None, id: str | None) -> InvalidToolCall:
    return InvalidToolCall(name=name, args='{"number": ', id=id, error="not valid JSON", type="invalid_tool_call")


def build(timeout: float | None, sync: Callable[[State], State] | None = None) -> Any:
    async def act(state: State) -> State:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        return {"messages": [*await run_tool_calls(message, TOOLS, timeout=timeout)]}

    node = RunnableLambda(sync, afunc=act) if sync else act
    return StateGraph(State).add_node("act", node).add_edge(START, "act").compile(checkpointer=InMemorySaver())


async def answers(
    *calls: ToolCall, invalid: tuple[InvalidToolCall, ...] = (), seconds: float | None = None
) -> list[ToolMessage]:
    message = AIMessage("", tool_calls=list(calls), invalid_tool_calls=list(invalid))
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    state = await build(seconds).ainvoke({"messages": [message]}, config)
    replies = state["messages"][1:]
    assert all(isinstance(reply, ToolMessage) for reply in replies)
    return list(replies)


async def test_every_call_is_answered_in_order() -> None:
    replies = await answers(
        call("double", "a", number=4),
        call("unknown", "b", number=4),
        call("double", "c", number="four"),
        call("broken", "d", number=4),
        call("double", "e"),
        call("search", "f", query="zebras"),
        call("steer", "g", number=4),
        invalid=(garbled("double", "h"), garbled(None, "i")),
    )
    assert [reply.tool_call_id for reply in replies] == list("abcdefghi")
    assert [reply.status for reply in replies] == ["success"] + ["error"] * 8
    patterns = [
        "^8$",
        "unknown is not a valid tool, try one of .*double",
        "number: Input should be a valid integer",
        "The tool failed: KeyError: 4",
        "number: Field required",
        "^Nothing about zebras.$",
        "The tool steer wanted to steer the graph",
        "The tool double was not run: its arguments are not a valid JSON object",
        r"The tool \? was not run",
    ]
    assert [
        pattern for reply, pattern in zip(replies, patterns, strict=True) if not re.search(pattern, reply.text)
    ] == []


def test_call_that_takes_too_long_is_given_up_alone() -> None:
    calls = call("endless", "a", number=1), call("double", "b", number=1)
    [late, done], _ = virtually(answers(*calls, seconds=0.2))
    assert (late.status, late.content) == (
        "error",
        "The tool endless gave no answer within 0.2 seconds. Try something else.",
    )
    assert done.content == "2"


async def test_calls_run_at_once() -> None:
    meeting = asyncio.Barrier(3)

    @tool
    async def meet(number: int) -> int:
        """Wait for the others."""
        await meeting.wait()
        return number

    async def act(state: State) -> State:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        return {"messages": [*await run_tool_calls(message, [meet], timeout=10)]}

    graph = StateGraph(State).add_node("act", act).add_edge(START, "act").compile()
    message = AIMessage("", tool_calls=[call("meet", str(i), number=i) for i in range(3)])
    state = await graph.ainvoke({"messages": [message]})
    assert [reply.content for reply in state["messages"][1:]] == ["0", "1", "2"]


async def test_missing_ids_are_made_from_the_position() -> None:
    calls, invalid = (call("double", None, number=1), call("double", "", number=2)), (garbled("double", None),)
    replies = await answers(*calls, invalid=invalid)
    assert [reply.tool_call_id for reply in replies] == ["call_1", "call_2", "call_3"]
    message = with_call_ids(AIMessage("", tool_calls=list(calls), invalid_tool_calls=list(invalid)))
    ids = [each["id"] for each in [*message.tool_calls, *message.invalid_tool_calls]]
    assert ids == [reply.tool_call_id for reply in replies]
    assert with_call_ids(message) == message


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (["double", "double", "double"], ["double", "double_2", "double_3"]),
        ([None, "call_1"], ["call_1", "call_1_2"]),
        (["a_3", "a", "a"], ["a_3", "a", "a_2"]),
    ],
)
def test_no_two_calls_have_the_same_id(given: list[str | None], ids: list[str]) -> None:
    message = with_call_ids(AIMessage("", tool_calls=[call("double", key, number=1) for key in given]))
    assert [each["id"] for each in message.tool_calls] == ids
    assert with_call_ids(message) == message


@pytest.mark.parametrize("given", [None, "double"])
def test_no_two_calls_of_a_conversation_have_the_same_id(given: str | None) -> None:
    conversation: list[AIMessage] = []
    for number in range(4):
        block = {"type": "tool_use", "id": given, "name": "double", "input": {"number": number}}
        message = AIMessage([{"type": "text", "text": "So."}, block], tool_calls=[call("double", given, number=number)])
        conversation.append(with_call_ids(message, conversation))
    calls = [each for message in conversation for each in message.tool_calls]
    assert [each["args"] for each in calls] == [{"number": number} for number in range(4)]
    assert len({each["id"] for each in calls}) == 4
    # A block under an id that its call has no more would be a call that nothing answers.
    for message in conversation:
        assert {block.get("id") for block in message.content if isinstance(block, dict)} <= {
            None,
            message.tool_calls[0]["id"],
        }


async def test_message_without_calls_has_no_answers() -> None:
    assert await answers() == []


async def test_only_invalid_calls() -> None:
    assert [reply.tool_call_id for reply in await answers(invalid=(garbled("double", "a"),))] == ["a"]


async def test_artifact_reaches_the_graph() -> None:
    found: list[SearchResult] = [{"title": "T", "url": "corpus:t.md", "content": "Text."}]

    async def search(query: str) -> list[SearchResult]:
        return found

    async def act(state: State) -> State:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        return {"messages": [*await run_tool_calls(message, [search_tool(search)], timeout=None)]}

    graph = StateGraph(State).add_node("act", act).add_edge(START, "act").compile()
    state = await graph.ainvoke({"messages": [AIMessage("", tool_calls=[call("search", query="t")])]})
    assert json.loads(state["messages"][-1].content) == state["messages"][-1].artifact == found


async def test_interrupt_inside_a_tool_pauses_the_graph() -> None:
    graph = build(timeout=10)
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    message = AIMessage("", tool_calls=[call("ask", "a", question="Sure?"), call("double", "b", number=2)])
    paused = await graph.ainvoke({"messages": [message]}, config)
    assert [each.value for each in paused["__interrupt__"]] == ["Sure?"]
    state = await graph.ainvoke(Command(resume="yes"), config)
    assert [reply.content for reply in state["messages"][1:]] == ["The person says yes.", "4"]


@pytest.fixture
def background() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_synchronous_run_in_a_background_loop(background: asyncio.AbstractEventLoop) -> None:
    async def act(state: State) -> State:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        return {"messages": [*await run_tool_calls(message, TOOLS, timeout=10)]}

    def sync(state: State) -> State:
        return asyncio.run_coroutine_threadsafe(act(state), background).result()

    graph = build(10, sync)
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    message = AIMessage("", tool_calls=[call("ask", "a", question="Sure?"), call("unknown", "b")])
    assert [each.value for each in graph.invoke({"messages": [message]}, config)["__interrupt__"]] == ["Sure?"]
    replies = graph.invoke(Command(resume="yes"), config)["messages"][1:]
    assert [reply.status for reply in replies] == ["success", "error"]
    assert replies[0].content == "The person says yes."


async def test_too_many_calls_are_refused_and_a_result_that_is_too_long_is_cut() -> None:
    @tool
    def flood(number: int) -> str:
        """Say too much."""
        return "x" * 3_000_000

    async def act(state: State) -> State:
        message = with_call_ids(AIMessage("", tool_calls=[call("flood", str(i), number=i) for i in range(10_000)]))
        return {"messages": [*await run_tool_calls(message, [flood], timeout=None)]}

    graph = StateGraph(State).add_node("act", act).add_edge(START, "act").compile()
    answers = (await graph.ainvoke({"messages": []}))["messages"]
    assert len(answers) == 65
    assert "at most 64 calls" in answers[-1].text
    assert all(len(answer.text) < 2_001_000 for answer in answers)
    assert "3000000 characters are too many" in answers[0].text


@pytest.mark.hostile
async def test_a_tool_that_ends_the_process_or_its_task_does_not_end_the_run() -> None:
    wild_calls = [call("wild", str(number), number=number) for number in range(len(ENDS))]
    more = [call("cancelling", "c", number=1), call("leaving", "l", number=7), call("double", "d", number=4)]
    replies = await answers(*wild_calls, *more)
    assert [reply.status for reply in replies] == [*["error"] * 6, "success"]
    texts = ["BaseException: boo", "SystemExit: 3", "was cancelled", "ValueError: x�y", "was cancelled"]
    texts += ["SystemExit: 7", "8"]
    assert all(text in reply.text for text, reply in zip(texts, replies, strict=True))


@pytest.mark.hostile
async def test_a_cancelled_run_ends_although_its_tool_runs() -> None:
    running = asyncio.create_task(answers(call("endless", number=1)))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_arguments_that_a_tool_does_not_take_are_refused() -> None:
    refused, taken = await answers(call("double", "1", number=4, times=3, by=2), call("double", "2", number=4))
    assert (refused.status, taken.text) == ("error", "8")
    assert "was not run: it takes number, not by, times. Call it again with what it takes." in refused.text


@pytest.mark.hostile
async def test_results_are_made_fit_to_be_stored() -> None:
    (reply,) = await answers(call("unfit", number=1))
    assert reply.content == "a�bc"
