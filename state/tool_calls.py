"""Tool calls of a message: how many are read, and how some of them are left out."""

from collections.abc import Sequence
from typing import TypeVar

from langchain_core.messages import AIMessage, ToolCall

from reflective_agents.state.json_types import JsonMapping

MAX_CALLS = 64
"""Calls of one message that are run; one more is refused, which tells the model, and the rest is dropped."""
M = TypeVar("M", bound=AIMessage)


def only_calls(message: M, calls: Sequence[ToolCall]) -> M:
    """Return the message with these of its tool calls alone, in its content, too: Anthropic's messages and OpenAI's
    responses repeat each call as a block, and are refused with one that nothing answers."""
    kept = {call["id"] for call in calls}
    called = {call["id"] for call in message.tool_calls if call["id"]}
    dropped = called - kept
    content = message.content
    if isinstance(content, list):
        content = [block for block in content if not (isinstance(block, dict) and _ids_of(block) & dropped)]
    return message.model_copy(update={"tool_calls": list(calls), "content": content})


def _ids_of(block: JsonMapping) -> set[object]:
    return {block.get("id"), block.get("call_id")}
