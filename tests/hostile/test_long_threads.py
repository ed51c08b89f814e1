"""A thread of thousands of messages is read beside the event loop, by every node."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from reflective_agents.graphs.chain_of_thought import graph


@pytest.fixture(scope="module")
def thousands() -> list[AnyMessage]:
    """A thread of 8,000 messages, made where no loop waits for it."""
    return [
        message
        for number in range(4_000)
        for message in (
            HumanMessage(f"We planned a journey of {number} miles. " * 10, id=f"question {number}"),
            AIMessage("So be it. " * 30, id=f"answer {number}"),
        )
    ]


async def test_a_thread_of_thousands_of_messages(thousands: list[AnyMessage]) -> None:
    asked: Any = {"messages": [*thousands, HumanMessage("What?", id="question")]}
    context: Any = {"model": "offline", "context_window": 8_192, "structured": "text"}
    events = [event async for event in graph.astream(asked, context=context, stream_mode="custom")]
    assert [event["covered"] for event in events if event["event"] == "compacted"] > [7_000]
