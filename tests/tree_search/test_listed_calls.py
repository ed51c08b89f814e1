"""Steps that a model lists as calls of one reply: each becomes a message of its own."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from reflective_agents.graphs.lats import graph
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

CALLS = [{"name": "stock", "args": {"item": item}, "id": f"call_{item}"} for item in ("kettle", "toaster")]
TEXT = {"type": "text", "text": "I look both up."}
ANTHROPIC = [TEXT, *({"type": "tool_use", "id": call["id"], "name": "stock", "input": call["args"]} for call in CALLS)]
RESPONSES = [
    TEXT,
    *(
        {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], "name": "stock", "arguments": "{}"}
        for call in CALLS
    ),
]


@tool
def stock(item: str) -> str:
    """How many of an item are in stock."""
    return f"14 of {item}"


@pytest.mark.parametrize("content", [ANTHROPIC, RESPONSES])
async def test_each_step_keeps_the_blocks_of_its_own_call(content: list[Any]) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return {"reasoning": "Fair.", "score": 0.5, "solved": False}
        return AIMessage(content, tool_calls=CALLS) if request.messages[-1].type != "tool" else "14."

    model = FakeChatModel(reply=reply)
    context: dict[str, Any] = {"model": model, "search": "none", "tools": [stock], "proposals": "list", "n": 2}
    context |= {"grading": "each", "max_expansions": 2}
    out = await graph.ainvoke({"messages": [("user", "How many?")]}, context=context)
    steps = [node["messages"][0] for node in out["tree"].values() if node["messages"]]
    acting = [step for step in steps if step.tool_calls]
    assert len(acting) >= len(CALLS)
    for step in acting:
        [call] = step.tool_calls
        blocks = [block.get("call_id", block.get("id")) for block in step.content if block["type"] != "text"]
        assert blocks == [call["id"]]
        assert step.text == TEXT["text"]
