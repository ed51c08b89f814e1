"""Tools of the user's own, for agents and for critics."""

import inspect
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BeforeValidator, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from reflective_agents.state.callers_schemas import Bounds, check_size
from reflective_agents.state.context import from_json
from reflective_agents.state.policy import OBJECT, Operator
from reflective_agents.text.joined import joined

T = TypeVar("T")
MOST = 512
"""Tools of one agent."""
DECLARED = Bounds(characters=200_000, values=10_000)
"""How much the schemas of all tools may hold that are data: those that an MCP server sends."""
Named = Literal["search", "calculator"]
NAMED: tuple[str, ...] = get_args(Named)
"""Tools of ours that a critic can be given by their names."""


def _are_tools(value: Sequence[T]) -> list[T]:
    if not isinstance(value, list | tuple) or not all(callable(tool) or hasattr(tool, "ainvoke") for tool in value):
        raise ValueError("tools are a list of LangChain's tools, or of functions with type hints and a docstring")
    problems = joined(map(_tool_problem, value), "; ")
    if problems:
        raise ValueError(problems)
    if len(value) > MOST:
        raise ValueError(f"an agent has at most {MOST} tools, and these are {len(value)}: choose among them")
    schemas = [getattr(tool, "args_schema", None) for tool in value]
    declared = [schema for schema in schemas if isinstance(schema, dict)]
    check_size(declared, DECLARED)
    return list(value)


def _tool_problem(tool: Any) -> str:
    """Say in words why a model could not call a tool; nothing if it could."""
    is_function = not hasattr(tool, "ainvoke")
    if is_function:
        name, function = getattr(tool, "__name__", ""), tool
    else:
        name, function = getattr(tool, "name", ""), getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    parameters = inspect.signature(function).parameters.values() if function else ()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return f"no model can fill in the *arguments of {name}: let it take a list, such as numbers: list[float]"
    if is_function and not inspect.getdoc(function):
        return f"{name} has no docstring: write one, which tells the model what it does and when to use it"
    return ""


def _are_critics_tools(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"a critic's tools are a list of {', '.join(NAMED)}, and in Python of tools and functions")
    for tool in value:
        if isinstance(tool, str) and tool not in NAMED:
            raise ValueError(f"there is no tool {tool!r} for critics: name {' or '.join(NAMED)}")
    _are_tools([tool for tool in value if not isinstance(tool, str)])
    return list(value)


def _are_named(tools: Sequence[Any]) -> bool:
    return all(isinstance(tool, str) for tool in tools)


Tools = Annotated[SkipJsonSchema[list[Any]], BeforeValidator(_are_tools), OBJECT]
"""In Python: tools of LangChain's, or functions, which become tools."""
CriticTools = Annotated[
    list[Any],
    BeforeValidator(_are_critics_tools),
    BeforeValidator(from_json),
    WithJsonSchema({"type": "array", "items": {"enum": [*NAMED], "type": "string"}, "default": []}),
    Operator(_are_named),
]
"""What a critic looks things up with before it judges: names of ours, or in Python tools and functions."""
