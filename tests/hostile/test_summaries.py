"""Summaries of long conversations that a model leaves empty, or writes without end: the run goes on."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from reflective_agents.graphs import builder_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

pytestmark = pytest.mark.hostile

TALK: list[AnyMessage] = [
    message
    for number in range(30)
    for message in (HumanMessage(f"Bed {number} holds roses. " * 20), AIMessage("I see."))
]
SUMMARIES: dict[str, Callable[[], str]] = {
    "empty": lambda: "",
    "blank": lambda: " \n" * 1_000,
    "10 MB": lambda: "Roses. " * 1_400_000,
    "one word of 10 MB": lambda: "a" * 10_000_000,
    "citations": lambda: "[1][2, 3]" * 100_000,
    "tags": lambda: "</summary>" * 100_000,
    "thought": lambda: "<think>" * 100_000,
}


@pytest.mark.thorough
@pytest.mark.crossed
@pytest.mark.parametrize("strategy", ["chain_of_thought", "react"])
@pytest.mark.parametrize("name", SUMMARIES)
async def test_a_run_goes_on_whatever_its_summary_is(name: str, strategy: str) -> None:
    summary = SUMMARIES[name]()

    def reply(request: Request) -> Reply:
        return summary if "Write the new record" in request.last else "Answer: An answer."

    model = FakeChatModel(reply=reply)
    context: Any = {"model": model, "context_window": 4_096, "search": "none", "max_model_calls": 40}
    out = await builder_of(strategy).compile().ainvoke({"messages": [*TALK, HumanMessage("What?")]}, context=context)
    assert out["outcome"]["status"] == "answered"
    assert max(len(str(call.messages)) for call in model.calls) < 50_000
