"""Models whose servers give calls of tools no ids, or each the same: what is sent to them, and to the next model."""

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from reflective_agents.graphs import graph_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.strategies import ASK


@tool
def double(number: int) -> str:
    """Double a number."""
    return str(2 * number)


@pytest.mark.parametrize("given", [None, "double"])
@pytest.mark.parametrize("name", ["react", "lats"])
async def test_no_prompt_has_two_calls_of_one_id(name: str, given: str | None) -> None:
    def reply(request: Request) -> Reply:
        done = sum(message.type == "tool" for message in request.messages)
        if request.schema:  # at first in the wrong form
            right = {"reasoning": "Right.", "score": 0.5, "solved": False}
            call = {"name": request.schema, "args": right if done > 1 else {}, "id": given}
        elif done > 2:
            return "Doubled."
        else:
            call = {"name": "double", "args": {"number": done}, "id": given}
        return AIMessage("", tool_calls=[call])

    model = FakeChatModel(reply=reply)
    context = {"model": model, "tools": [double], "search": "none", "max_model_calls": 20}
    await graph_of(name).ainvoke(ASK, context=context)
    longest = 0
    for request in model.calls:
        called = [message for message in request.messages if isinstance(message, AIMessage)]
        ids = [call["id"] for message in called for call in message.tool_calls]
        answered = [message.tool_call_id for message in request.messages if isinstance(message, ToolMessage)]
        assert len({*ids}) == len(ids)
        assert answered == ids
        longest = max(longest, len(ids))
    assert longest > 1
