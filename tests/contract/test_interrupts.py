"""`interrupt()` pauses a run wherever code of one's own is called, and what it is answered with arrives there."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from reflective_agents.graphs.react import builder
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
