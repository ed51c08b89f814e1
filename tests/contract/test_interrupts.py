"""`interrupt()` pauses a run wherever code of one's own is called, and what it is answered with arrives there."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from reflective_agents.graphs import builder_of, with_settings
from reflective_agents.graphs.react import builder, graph
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies import ASK, thread


def found() -> str:
    return f"the person says {interrupt('How?')}"


def searching(query: str) -> list[str]:
    return [found()]


async def searching_async(query: str) -> list[str]:
    return [found()]


class Shelf(BaseRetriever):
    """A retriever that asks somebody."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(found(), metadata={"source": "shelf.txt"})]


@tool
def search(query: str) -> str:
    """Search for sources, in a thread."""
    return found()


@tool("search")
async def search_async(query: str) -> str:
    """Search for sources."""
    return found()


def agent(request: Request) -> Reply:
    results = [message.text for message in request.messages if message.type == "tool"]
    return f"I found: {results[-1]}" if results else ToolUse("search", {"query": "how"})


def asking_model(request: Request) -> Reply:
    return f"I found: {found()}"


CASES: dict[str, dict[str, Any]] = {
    "a search function": {"search": searching},
    "a search coroutine": {"search": searching_async},
    "a retriever": {"search": Shelf()},
    "a tool": {"search": "none", "tools": [search]},
    "a tool that is awaited": {"search": "none", "tools": [search_async]},
    "a model": {"search": "none", "reply": asking_model},
}


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("streamed", [False, True], ids=["invoked", "streamed"])
@pytest.mark.parametrize("given", CASES.values(), ids=list(CASES))
async def test_a_person_can_be_asked(given: dict[str, Any], streamed: bool) -> None:
    reply: Callable[[Request], Reply] = given.get("reply", agent)
    settings = {name: value for name, value in given.items() if name != "reply"}
    context = ReactContext(model=FakeChatModel(reply=reply), **settings)
    graph = builder.compile(checkpointer=InMemorySaver())

    async def run(inputs: Any) -> Any:
        if streamed:  # then the reply is listened to while it comes
            async for _ in graph.astream(inputs, thread(), context=context, stream_mode=["messages", "custom"]):
                pass
        else:
            await graph.ainvoke(inputs, thread(), context=context)
        return await graph.aget_state(thread())

    paused = await run(ASK)
    assert [interrupt.value for interrupt in paused.interrupts] == ["How?"]
    assert paused.values.get("outcome") is None
    ended = await run(Command(resume="slowly"))
    assert "the person says slowly" in ended.values["answer"]
    assert ended.values["outcome"]["status"] == "answered"


def payments(paid: list[str]) -> list[BaseTool]:
    """Return a tool that asks a person before it pays, and one that asks nobody. The first question comes latest, and
    when they are asked anew it comes first."""
    seen = set[str]()

    @tool
    async def pay(to: str) -> str:
        """Pay, if the person allows it."""
        get_stream_writer()({"looks_up": to})
        if to not in seen:
            seen.add(to)
            await asyncio.sleep({"ann": 0.2, "bob": 0.1}[to])
        if interrupt({"pay": to}) != "yes":
            return f"{to} is not paid"
        paid.append(to)
        return f"{to} is paid"

    @tool
    async def mail(to: str) -> str:
        """Send a mail."""
        paid.append(f"mail to {to}")
        return "sent"

    return [pay, mail]


def paying(request: Request) -> Reply:
    """Pay two, and write to a third, all at once."""
    results = [message.text for message in request.messages if message.type == "tool"]
    if results:
        return ", ".join(results)
    wanted = (("pay", "ann"), ("pay", "bob"), ("mail", "cid"))
    return AIMessage("", tool_calls=[{"name": name, "args": {"to": to}, "id": to} for name, to in wanted])


ANSWERS = {"ann": "no", "bob": "yes"}


def answered(result: Any, most: int) -> Any:
    """Return what answers at most so many of the questions that a run waits for: no to Ann, and yes to Bob."""
    questions = {each.id: each.value["pay"] for each in result["__interrupt__"]}
    return Command(resume={key: ANSWERS[name] for key, name in list(questions.items())[:most]})


@pytest.mark.parametrize("most", [1, 2], ids=["one after the other", "both at once"])
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a parent"])
async def test_each_of_several_calls_gets_its_own_answer_and_is_carried_out_once(most: int, inside: bool) -> None:
    paid: list[str] = []
    settings: dict[str, Any] = {"model": FakeChatModel(reply=paying), "search": "none", "tools": payments(paid)}
    if inside:
        parent = StateGraph(MessagesState).add_node("agent", with_settings(graph, **settings)).add_edge(START, "agent")
        run: Any = parent.compile(checkpointer=InMemorySaver())
    else:
        run = with_settings(graph, **settings).copy({"checkpointer": InMemorySaver()})
    result = await run.ainvoke(ASK, thread())
    assert sorted(each.value["pay"] for each in result["__interrupt__"]) == ["ann", "bob"]
    for _ in range(2 // most):
        result = await run.ainvoke(answered(result, most), thread())
    assert sorted(paid) == ["bob", "mail to cid"]
    assert result["messages"][-1].text == "ann is not paid, bob is paid, sent"


@pytest.mark.parametrize("strategy", ["react", "trials"])
def test_so_it_is_for_synchronous_callers(strategy: str, tmp_path: Path) -> None:
    paid: list[str] = []
    context: dict[str, Any] = {"model": FakeChatModel(reply=paying), "search": "none", "tools": payments(paid)}
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        run: Any = builder_of(strategy).compile(checkpointer=saver)
        result = run.invoke(ASK, thread(), context=context)
        run.invoke(answered(result, 2), thread(), context=context)
    assert sorted(paid) == ["bob", "mail to cid"]


async def test_what_tools_stream_comes_in_the_stream_of_the_run() -> None:
    context: dict[str, Any] = {"model": FakeChatModel(reply=paying), "search": "none", "tools": payments([])}
    run = builder.compile(checkpointer=InMemorySaver())
    events = [event async for event in run.astream(ASK, thread(), context=context, stream_mode="custom")]
    assert sorted(event["looks_up"] for event in events if "looks_up" in event) == ["ann", "bob"]


def writing(request: Request) -> Reply:
    """Write to two at once."""
    if any(message.type == "tool" for message in request.messages):
        return "done"
    return AIMessage("", tool_calls=[{"name": "write", "args": {"to": to}, "id": to} for to in ANSWERS])


@pytest.mark.parametrize("subgraphs", [False, True])
async def test_what_models_in_tools_write_comes_in_the_stream_of_the_run(subgraphs: bool) -> None:
    writer = FakeChatModel(reply=lambda request: "words")

    @tool
    async def write(to: str) -> str:
        """Let another model write."""
        return (await writer.ainvoke(to)).text

    context: dict[str, Any] = {"model": FakeChatModel(reply=writing), "search": "none", "tools": [write]}
    run = builder.compile(checkpointer=InMemorySaver())
    options: dict[str, Any] = {"stream_mode": "messages", "subgraphs": subgraphs}
    parts: list[Any] = [part async for part in run.astream(ASK, thread(), context=context, **options)]
    messages = [(part[-1] if subgraphs else part)[0] for part in parts]
    assert [message.text for message in messages if message.type == "AIMessageChunk" and message.text] == ["words"] * 2


async def test_what_a_tool_gives_beside_the_text_need_not_be_storable() -> None:
    @tool(response_format="content_and_artifact")
    async def write(to: str) -> tuple[str, Lock]:
        """Write to somebody."""
        return f"to {to}", Lock()

    context: dict[str, Any] = {"model": FakeChatModel(reply=writing), "search": "none", "tools": [write]}
    result = await builder.compile(checkpointer=InMemorySaver()).ainvoke(ASK, thread(), context=context)
    assert result["steps"][0]["observation"] == "to ann\nto bob"
