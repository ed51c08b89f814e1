"""The strategies as tools of the Model Context Protocol: a question in; the answer, outcome and usage out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, TextContent, Tool

from reflective_agents.serve.streaming import progress_line
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.policy import operators_settings
from reflective_agents.state.settings import settings_of
from reflective_agents.text.structure import Json

SHOWN = ("answer", "structured_response", "outcome", "usage")
Progress = Callable[[Mapping[str, Json]], Awaitable[None]]
"""Tells the client an event of the run."""
Run = Callable[[str, JsonObject, Progress], Awaitable[CallToolResult]]
"""Runs a strategy with the arguments of a call."""
_COMMON = settings_of("chain_of_thought").model_fields.keys()
"""Settings of all strategies: their types are told, and not in words each time."""


def mcp_server(offered: Sequence[str], run: Run, settings: frozenset[str] | None = None) -> Server[Any, Any]:
    """Return a server of strategies.

    Args:
        offered: Their names.
        run: What runs one.
        settings: Those that clients may choose; all but the operator's if it is None.
    """
    server: Server[Any, Any] = Server("reflective-agents", version("reflective-agents"))

    @server.list_tools()  # type: ignore[no-untyped-call,untyped-decorator]
    async def list_tools() -> list[Tool]:
        return [tool(name, settings) for name in offered]

    @server.call_tool()  # type: ignore[untyped-decorator]
    async def call_tool(name: str, arguments: JsonObject) -> CallToolResult:
        context = server.request_context
        token, number = context.meta.progressToken if context.meta else None, 0

        async def progress(event: Mapping[str, Json]) -> None:
            nonlocal number
            number += 1
            if token is not None:
                line, request = progress_line(event).strip(), str(context.request_id)
                await context.session.send_progress_notification(
                    token, number, message=line, related_request_id=request
                )

        return await run(name, arguments, progress)

    return server


@cache
def tool(strategy: str, settings: frozenset[str] | None = None) -> Tool:
    """Describe a strategy as a tool.

    Args:
        strategy: The strategy.
        settings: Those that clients may choose; all but the operator's if it is None.
    """
    schema = settings_of(strategy)
    form, closed = schema.model_json_schema(), operators_settings(schema)
    fields = {
        name: _brief(name, field)
        for name, field in form["properties"].items()
        if name not in closed and (settings is None or name in settings)
    }
    properties = {
        "question": {"type": "string", "description": "The question or the task, whole: the tool sees nothing else."},
        "settings": {
            "type": "object",
            "description": "Settings of the strategy.",
            "properties": fields,
            "additionalProperties": False,
        },
        "thread": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "description": "A name for the conversation. A later call with the same name goes on with it.",
        },
    }
    input_schema = {
        "type": "object",
        "properties": properties,
        "required": ["question"],
        "$defs": form.get("$defs", {}),
    }
    return Tool(name=strategy, description=f"{schema.does} Use it when {schema.use_when}.", inputSchema=input_schema)


def _brief(name: str, field: JsonObject) -> JsonObject:
    left_out = {"title", "description"} if name in _COMMON else {"title"}
    return {key: value for key, value in field.items() if key not in left_out}


def result_of(output: JsonMapping) -> CallToolResult:
    """Return what a tool says of a run that has an answer."""
    shown = {name: output[name] for name in SHOWN if name in output}
    return CallToolResult(content=[TextContent(type="text", text=str(shown["answer"]))], structuredContent=shown)


def error_of(reason: object) -> CallToolResult:
    """Return what a tool says that has failed."""
    return CallToolResult(content=[TextContent(type="text", text=str(reason))], isError=True)
