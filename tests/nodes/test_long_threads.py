"""A thread of thousands of messages is read beside the event loop, which it would hold."""

import itertools
import threading
from collections import Counter
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from reflective_agents.graphs.chain_of_thought import graph


async def test_thousands_of_messages_are_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    on_loop: Counter[bool] = Counter()
    text: Any = vars(BaseMessage)["text"].fget

    def counted(message: BaseMessage) -> Any:
        on_loop[threading.current_thread() is threading.main_thread()] += 1
        return text(message)

    monkeypatch.setattr(BaseMessage, "text", property(counted))
    turns = [(HumanMessage(f"{n} miles", id=f"u{n}"), AIMessage("So be it.", id=f"a{n}")) for n in range(1_000)]
    asked: Any = {"messages": [*itertools.chain(*turns), HumanMessage("What?", id="question")]}
    context: Any = {"model": "offline", "context_window": 8_192, "structured": "text"}
    await graph.ainvoke(asked, context=context)
    assert on_loop[False] > 10 * on_loop[True] > 0
