"""Running the tool calls of a message: at once, by LangGraph's own `ToolNode`, with an answer to each."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, InvalidToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolInvocationError
from langgraph.types import Command

import telemetry


def with_call_ids(message: AIMessage) -> AIMessage:
    """Return the message with an id for each of its tool calls: a missing one is made from the call's position.

    Store this message rather than the model's own: a provider refuses a tool message whose id no call has.
    """
    count = len(message.tool_calls)
    calls = [{**call, "id": call["id"] or f"call_{i}"} for i, call in enumerate(message.tool_calls, 1)]
    invalid = [
        {**call, "id": call["id"] or f"call_{i}"} for i, call in enumerate(message.invalid_tool_calls, count + 1)
    ]
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": invalid})


async def run_tool_calls(
    message: AIMessage,
    tools: Sequence[BaseTool],
    *,
    timeout: float | None,  # noqa: ASYNC109 - it holds for each call, which the caller's own timeout could not do
) -> list[ToolMessage]:
    """Run all tool calls of a message at once. To be called inside a node of a graph.

    An unknown tool, arguments that do not fit, a tool that raises or takes too long, and a call whose arguments are no
    JSON are answered with status "error" and what to do. `interrupt()` inside a tool pauses the graph as it should.

    Args:
        message: what the model said.
        tools: what it may call.
        timeout: seconds that each call may take; None for no end.

    Returns:
        One tool message for each call: the valid calls in their order, then the invalid ones (so are they sent, too).
    """
    message = with_call_ids(message)
    answers = [_refuse(call) for call in message.invalid_tool_calls]
    if not message.tool_calls:
        return answers
    node = ToolNode(tools, handle_tool_errors=_explain, awrap_tool_call=_bounded(timeout))
    output = await node.ainvoke({"messages": [message]})
    return [*output["messages"], *answers]


_Execute = Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]


def _bounded(timeout: float | None) -> Callable[[ToolCallRequest, _Execute], Awaitable[ToolMessage | Command[Any]]]:
    async def call(request: ToolCallRequest, execute: _Execute) -> ToolMessage:
        with telemetry.tool_call(request.tool.name if request.tool else "unknown") as told:
            answer = await in_time(request, execute)
            told.note(outcome="error" if answer.status == "error" else "ok", result=answer.text)
            return answer

    async def in_time(request: ToolCallRequest, execute: _Execute) -> ToolMessage:
        try:
            async with asyncio.timeout(timeout):
                answer = await execute(request)
        except TimeoutError:  # of the clock: what a tool raises itself has become an answer in `execute`
            return _error(request.tool_call, f"gave no answer within {timeout:g} seconds. Try something else.")
        if isinstance(answer, ToolMessage):
            return answer
        return _error(request.tool_call, "wanted to steer the graph, which is not allowed here. Use another tool.")

    return call


def _explain(error: Exception) -> str:
    """Say what a tool raised, or which of the call's arguments do not fit."""
    if isinstance(error, ToolInvocationError):
        return error.message
    return f"The tool failed: {type(error).__name__}: {error}\nChange the arguments, or try something else."


def _error(call: Any, what: str) -> ToolMessage:
    name = call["name"] or "?"
    return ToolMessage(f"The tool {name} {what}", name=call["name"], tool_call_id=call["id"], status="error")


def _refuse(call: InvalidToolCall) -> ToolMessage:
    return _error(call, "was not run: its arguments are no valid JSON object. Call it again with valid JSON.")
