"""Functions as nodes: each is one run to whoever traces, and synchronous callers may call others of their kind."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.graphs.react import graph as react
from reflective_agents.models import event_loops
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse


class Names(AsyncCallbackHandler):
    """Notes the names of all runs but those of models."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        """Note a run."""
        self.seen.append(kwargs["name"])


async def test_a_node_is_one_run() -> None:
    names = Names()
    context = ChainOfThoughtContext(model=FakeChatModel(reply=lambda request: "Answer: 4"), samples=1)
    await graph.ainvoke({"messages": [("user", "2 + 2?")]}, {"callbacks": [names]}, context=context)
    assert names.seen == ["chain_of_thought", "begin", "sample", "vote", "finish"]


class Synchronous(FakeChatModel):
    """Asked by its synchronous half, in a thread."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Answer: 42"))])

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("synchronous callers use the synchronous half")


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each background loop a single thread."""
    monkeypatch.setattr(event_loops, "THREADS", 1)
    event_loops.background_loop.cache_clear()
    yield
    event_loops.background_loop.cache_clear()


@pytest.mark.usefixtures("one_thread")
def test_a_caller_within_a_caller_needs_none_of_its_threads() -> None:
    def calculate(task: str) -> str:
        """Calculate."""
        return str(graph.invoke({"messages": [("user", task)]}, context={"model": Synchronous(reply=str)})["answer"])

    def reply(request: Request) -> Reply:
        return request.last if request.messages[-1].type == "tool" else ToolUse("calculate", {"task": "6 * 7?"})

    context = {"model": FakeChatModel(reply=reply), "tools": [calculate], "search": "none", "max_seconds": 5}
    out = react.invoke({"messages": [("user", "6 * 7?")]}, context=context)
    assert (out["outcome"]["status"], out["answer"]) == ("answered", "42")
