"""Running the tool calls of a message: at once, by LangGraph's own `ToolNode`, with an answer to each."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import INVALID_TOOL_NAME_ERROR_TEMPLATE, ToolCallRequest, ToolInvocationError
from langgraph.types import Command
from pydantic import BaseModel

from reflective_agents import telemetry
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.secrets import redacted
from reflective_agents.state.tool_calls import MAX_CALLS, with_call_ids
from reflective_agents.text.clean import clean_data

MAX_RESULT = 2_000_000
"""Most characters of a tool's result that are kept."""
MAX_PARTS = 1_000
"""Most parts of a result that comes in several."""
_SHOWN = 50
"""Names that an answer to a call of no tool lists at most."""


Run = Callable[[ToolNode, AIMessage], Awaitable[list[ToolMessage]]]
"""Runs all calls of a message by a node that has their tools, and returns their results in the order of the calls."""


async def run_together(node: ToolNode, message: AIMessage) -> list[ToolMessage]:
    """Run all calls of a message at once, in the task that asks for them."""
    output = await node.ainvoke({"messages": [message]})
    return [*output["messages"]]


async def run_tool_calls(
    message: AIMessage,
    tools: Sequence[BaseTool],
    *,
    timeout: float | None,  # noqa: ASYNC109 - it holds for each call, which the caller's own timeout could not do
    run: Run = run_together,
) -> list[ToolMessage]:
    """Run all tool calls of a message at once. To be called inside a node of a graph.

    An unknown tool, arguments that do not fit, a tool that raises or takes too long, and a call whose arguments are not
    JSON are answered with status "error" and what to do. `interrupt()` inside a tool pauses the graph as it should.

    Args:
        message: what the model said.
        tools: what it may call.
        timeout: seconds that each call may take; None for no end.
        run: how the calls are run.

    Returns:
        One tool message for each call: the valid calls in their order, then the invalid ones (so are they sent, too).
    """
    message = with_call_ids(message)
    beyond = message.tool_calls[MAX_CALLS:]
    answers = [_error(call, f"was not run: a message may have at most {MAX_CALLS} calls.") for call in beyond]
    answers += [_refuse(call) for call in message.invalid_tool_calls]
    message = message.model_copy(update={"tool_calls": message.tool_calls[:MAX_CALLS]})
    if not message.tool_calls:
        return answers
    # Those that are called: LangGraph reads the schema of each, which takes milliseconds.
    wanted = {call["name"] for call in message.tool_calls}
    called = [_contained_tool(tool) for tool in tools if tool.name in wanted]
    bounded = _bounded(timeout, [tool.name for tool in tools])
    node = ToolNode(called, handle_tool_errors=_explain, awrap_tool_call=bounded)
    return [*await run(node, message), *answers]


_Execute = Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[str]]]


def _bounded(
    timeout: float | None, names: Sequence[str]
) -> Callable[[ToolCallRequest, _Execute], Awaitable[ToolMessage | Command[str]]]:
    async def call(request: ToolCallRequest, execute: _Execute) -> ToolMessage:
        with telemetry.tool_call(request.tool.name if request.tool else "unknown") as record:
            answer = await in_time(request, execute)
            record.note(outcome="error" if answer.status == "error" else "ok", result=answer.text)
            return answer

    async def in_time(request: ToolCallRequest, execute: _Execute) -> ToolMessage:
        if request.tool is None:
            return _unknown(request.tool_call, names)
        misfit = _misfit(request.tool, request.tool_call["args"])
        if misfit:
            return _error(request.tool_call, f"was not run: it takes {misfit}. Call it again with what it takes.")
        try:
            async with asyncio.timeout(timeout):
                answer = await _contained(request, execute)
        except TimeoutError:  # of the clock: what a tool raises itself has become an answer in `execute`
            return _error(request.tool_call, f"gave no answer within {timeout:g} seconds. Try something else.")
        if isinstance(answer, ToolMessage):
            return cut_result(answer)
        return _error(request.tool_call, "wanted to steer the graph, which is not allowed here. Use another tool.")

    return call


def _misfit(tool: BaseTool, args: JsonMapping) -> str:
    """Return what a tool takes, and which arguments it does not: it would ignore them without a word; empty if none."""
    parameters = _parameters(tool)
    surplus = sorted(args.keys() - parameters)
    if not parameters or not surplus:
        return ""
    return f"{', '.join(sorted(parameters))}, not {', '.join(surplus)}"


def _parameters(tool: BaseTool) -> set[str]:
    """Return the names of all arguments that a tool takes; none if it takes any."""
    schema = tool.args_schema
    if isinstance(schema, dict):
        return set() if schema.get("additionalProperties") else set(schema.get("properties") or ())
    if schema is None or not issubclass(schema, BaseModel) or schema.model_config.get("extra") == "allow":
        return set()
    aliases = {field.alias for field in schema.model_fields.values() if field.alias}
    return schema.model_fields.keys() | aliases


def _contained_tool(tool: BaseTool) -> BaseTool:
    """Make `sys.exit` in a coroutine an error of the tool's: LangChain runs it in a task, which would end the loop."""
    run = tool._arun

    @wraps(run)
    async def arun(*args: Any, **kwargs: Any) -> Any:
        try:
            return await run(*args, **kwargs)
        except SystemExit as error:
            raise RuntimeError(f"SystemExit: {error}") from error

    contained = tool.model_copy()
    object.__setattr__(contained, "_arun", arun)
    return contained


async def _contained(request: ToolCallRequest, execute: _Execute) -> ToolMessage | Command[str]:
    """Execute a call. What is no plain error, such as `sys.exit`, must not end the run either."""
    task = asyncio.current_task()
    assert task is not None
    cancellations = task.cancelling()
    try:
        return await execute(request)
    except asyncio.CancelledError:
        if task.cancelling() > cancellations:  # somebody else wants the run to end
            raise
        return _error(request.tool_call, "was cancelled. Try something else.")
    except (Exception, KeyboardInterrupt, GeneratorExit):  # `interrupt()` is such an exception
        raise
    except BaseException as error:  # noqa: BLE001 - a tool is foreign code: SystemExit, or an exception of its own
        return _error(request.tool_call, f"failed: {_described(error)}")


def cut_result(answer: ToolMessage) -> ToolMessage:
    """Make a result fit to be stored, cut off what is too long, and tell the model so."""
    content = answer.content if isinstance(answer.content, str) else answer.content[:MAX_PARTS]
    answer = answer.model_copy(update={"content": clean_data(content)})
    if not isinstance(answer.content, str) or len(answer.content) <= MAX_RESULT:
        return answer
    shortened = f"{answer.content[:MAX_RESULT]}\n(cut off: {len(answer.content)} characters are too many)"
    return answer.model_copy(update={"content": shortened})


def _explain(error: Exception) -> str:
    """Say what a tool raised, or which of the call's arguments do not fit."""
    if isinstance(error, ToolInvocationError):
        return error.message
    return f"The tool failed: {_described(error)}"


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {redacted(str(error))}\nChange the arguments, or try something else."


def _error(call: ToolCall | InvalidToolCall, what: str) -> ToolMessage:
    name = call["name"] or "?"
    return ToolMessage(f"The tool {name} {what}", name=call["name"], tool_call_id=call["id"] or "", status="error")


def _unknown(call: ToolCall, names: Sequence[str]) -> ToolMessage:
    """Answer in LangGraph's words, which knows of those tools alone that are called."""
    text = INVALID_TOOL_NAME_ERROR_TEMPLATE.format(
        requested_tool=call["name"], available_tools=", ".join(names[:_SHOWN])
    )
    return ToolMessage(text, name=call["name"], tool_call_id=call["id"] or "", status="error")


def _refuse(call: InvalidToolCall) -> ToolMessage:
    return _error(call, "was not run: its arguments are not a valid JSON object. Call it again with valid JSON.")
