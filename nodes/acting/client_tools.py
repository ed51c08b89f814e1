"""Tools that the caller carries out: a call of one pauses the run until its result comes."""

from collections.abc import Mapping, Sequence

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import interrupt
from pydantic import JsonValue

from reflective_agents.state.callers_schemas import expanded
from reflective_agents.state.families import TOOLS, parameters_of
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.tool_calls import MAX_CALLS
from reflective_agents.tools.run import cut_result

NO_RESULT = "The tool {name} gave no result. Try something else."


class ClientTool(StructuredTool):
    """A tool that is declared to the model and carried out by the caller."""


def client_tools(declared: Sequence[JsonMapping]) -> list[BaseTool]:
    """Return the caller's tools as models are shown them.

    Args:
        declared: `{"type": "function", "function": {"name": ..., "description": ..., "parameters": JSON schema}}` each.
    """
    schemas = expanded([parameters_of(tool) for tool in declared], TOOLS)
    tools: list[BaseTool] = []
    for tool, schema in zip(declared, schemas, strict=True):
        function = {**tool["function"], "parameters": schema}
        tools.append(_tool(**function))
    return tools


def _tool(name: str, parameters: JsonObject, description: str = "", **_: JsonValue) -> BaseTool:
    def carried_out(**_: JsonValue) -> str:
        raise AssertionError("declared for the model; the caller carries it out")

    schema = {**parameters, "title": name, "description": description or name}
    return ClientTool(name=name, description=description or name, args_schema=schema, func=carried_out)


def clients_own(tools: Sequence[BaseTool]) -> list[BaseTool]:
    """Return the tools among these that the caller carries out."""
    return [tool for tool in tools if isinstance(tool, ClientTool)]


def calls_of_caller(message: AIMessage, tools: Sequence[BaseTool]) -> list[ToolCall]:
    """Return the calls of a message that are the caller's to carry out."""
    names = {tool.name for tool in clients_own(tools)}
    return [call for call in message.tool_calls[:MAX_CALLS] if call["name"] in names]


def results_of(calls: Sequence[ToolCall]) -> list[ToolMessage]:
    """Pause the run until the caller gives the results of the calls: `[{"tool_call_id": ..., "content": ...}]`.

    The result of a single call may be given as mere text. A call without a result is answered as an error.
    """
    if not calls:
        return []
    shown = [{"id": call["id"], "name": call["name"], "args": call["args"]} for call in calls]
    reply = interrupt({"tool_calls": shown})
    if isinstance(reply, str):
        reply = [{"tool_call_id": calls[0]["id"], "content": reply}]
    results: dict[JsonValue, JsonValue] = {}
    for each in reply if isinstance(reply, list) else []:
        if isinstance(each, Mapping):
            results[each.get("tool_call_id")] = each.get("content")
    return [_result(call, results.get(call["id"])) for call in calls]


def _result(call: ToolCall, content: JsonValue) -> ToolMessage:
    name, key = call["name"], call["id"]
    if not isinstance(content, str):
        return ToolMessage(NO_RESULT.format(name=name), name=name, tool_call_id=key, status="error")
    return cut_result(ToolMessage(content, name=name, tool_call_id=key))
