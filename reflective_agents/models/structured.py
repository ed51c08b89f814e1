"""Structured output in three ways: the server's own JSON schema, a forced tool, or JSON as text; and how it is read."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, JsonValue, ValidationError

from reflective_agents.models.capabilities import ChatModel, is_openais, unbind, with_tools
from reflective_agents.state.context import Structured
from reflective_agents.state.errors import problems_of
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.tool_calls import with_call_ids
from reflective_agents.text.structure import read_object

T = TypeVar("T", bound=BaseModel)
LONGEST = 2_000
"""Characters of a reply that are repeated to the model which has to correct it."""
_AS_JSON = "Reply with one JSON object ({name}) and nothing else. Its fields:\n{fields}"
_EXAMPLE = "{form}\nIts shape, to be filled with what you have to say:\n{example}"


@lru_cache(maxsize=128)
def as_tool(schema: type[BaseModel]) -> JsonObject:
    """Turn a schema into a tool, cached: making it takes longer than all else that is done for a call."""
    return convert_to_openai_tool(schema)


def structured_request(
    way: Structured, chat: BaseChatModel, schema: type[BaseModel], prompt: Sequence[BaseMessage]
) -> tuple[ChatModel, list[BaseMessage]]:
    """Return a model and a prompt that ask for a form in one of the ways. The fields stand in the prompt only where the
    model would not see them otherwise."""
    if way == "tool":
        return with_tools(chat, [as_tool(schema)], schema.__name__), list(prompt)
    parameters = as_tool(schema)["function"]["parameters"]
    form = _AS_JSON.format(name=schema.__name__, fields="\n".join(_fields(parameters)))
    if way == "text":
        example = json.dumps(_example(parameters), ensure_ascii=False)
        return chat, _with(prompt, _EXAMPLE.format(form=form, example=example))
    named = {"name": schema.__name__, "schema": parameters}
    bound = chat.bind(extra_body={"response_format": {"type": "json_schema", "json_schema": named}})
    return bound, list(prompt) if is_openais(unbind(chat)[0]) else _with(prompt, form)


def _with(prompt: Sequence[BaseMessage], text: str) -> list[BaseMessage]:
    """Append a text to a prompt, as a part of its last message where possible."""
    # Many chat templates refuse two messages of the user's in a row.
    *before, last = prompt
    if isinstance(last, HumanMessage) and isinstance(last.content, str):
        return [*before, HumanMessage(f"{last.content}\n\n{text}")]
    return [*prompt, HumanMessage(text)]


def _fields(schema: JsonMapping, before: str = "") -> list[str]:
    """List the fields of a schema, one per line, with their types, bounds and descriptions."""
    lines = []
    for name, part in schema.get("properties", {}).items():
        field = _as_object(part)
        inner = _as_object(field.get("items", field))
        lines.append(f"{before}- {name} ({_type(field)}): {field.get('description', '')}".rstrip(" :"))
        lines += _fields(inner, before + "  ")
    return lines


def _as_object(schema: JsonValue) -> JsonObject:
    """Return a schema as an object: a caller's may be a mere `true`, which takes anything."""
    return schema if isinstance(schema, dict) else {}


def _type(field: JsonMapping) -> str:
    if "enum" in field:
        return "one of " + ", ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        least, most = field.get("minItems"), field.get("maxItems")
        count = f" of up to {most}" if most else ""
        if least and least == most:
            count = f" of {least}"
        item = _as_object(field.get("items"))
        return f"list{count}, each with" if "properties" in item else f"list{count}, each a {_type(item)}"
    if "anyOf" in field:
        return " or ".join(_type(_as_object(option)) for option in field["anyOf"])
    kinds = {"integer": "whole number", "string": "text", "boolean": "true or false", "object": "object with"}
    kind, bounds = str(field.get("type", "any")), (field.get("minimum"), field.get("maximum"))
    return f"{kinds.get(kind, kind)}{_between(*bounds)}"


def _between(least: float | None, most: float | None) -> str:
    """Say between which bounds a number lies."""
    if least is None or most is None:
        only = f", at least {_number(least)}" if least is not None else ""
        return only or (f", at most {_number(most)}" if most is not None else "")
    return f" from {_number(least)} to {_number(most)}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _example(field: JsonMapping) -> JsonValue:
    if field.get("enum"):
        first: JsonValue = field["enum"][0]
        return first
    if "anyOf" in field:
        return _example(_as_object(field["anyOf"][0]))
    kinds: dict[str, JsonValue] = {"string": "...", "number": 0.5, "integer": 1, "boolean": False, "null": None}
    if field.get("type") == "array":
        return [_example(_as_object(field.get("items")))]
    if "properties" in field:
        return {name: _example(_as_object(inner)) for name, inner in field["properties"].items()}
    return kinds.get(str(field.get("type")), {})


def read_form(reply: AIMessage, schema: type[T]) -> tuple[T | None, str]:
    """Read the output of a reply, whichever way it came.

    Returns:
        The output, or None with what is wrong with it, in words for the model.
    """
    if reply.response_metadata.get("finish_reason") == "length":
        return None, "your output was cut off because it was too long; be shorter"
    fields = _object(reply, schema)
    if fields is None:
        return None, "there is no JSON object with these fields"
    # Small models hand the example back as it is.
    example = _example(as_tool(schema)["function"]["parameters"])
    texts = isinstance(example, dict) and any(isinstance(value, str) for value in example.values())
    if fields == example and texts:  # numbers may be meant
        return None, "that is the example; fill it in"
    try:
        return schema.model_validate(fields), ""
    except ValidationError as error:
        return None, "; ".join(problems_of(error, "output"))


def _object(reply: AIMessage, schema: type[BaseModel]) -> JsonObject | None:
    fields = list(as_tool(schema)["function"]["parameters"].get("properties", {}))
    for call in reply.tool_calls:
        if call["name"] == schema.__name__:
            # Some models wrap the fields once more, in an object under the name of the form.
            wrapped = [inner for inner in (call["args"], *call["args"].values()) if _has(inner, fields)]
            return wrapped[0] if wrapped else call["args"]
    # LangChain puts arguments that are no JSON there, and ours reads more: fences, trailing commas, single quotes.
    texts = [call["args"] or "" for call in reply.invalid_tool_calls]
    for text in [*texts, reply.text]:
        output = read_object(text, fields, schema.__name__)
        if output is not None:
            return output
    return None


def _has(value: JsonValue, fields: Sequence[str]) -> bool:
    return isinstance(value, dict) and (not fields or any(field in value for field in fields))


def was_ignored(reply: AIMessage, way: Structured) -> bool:
    """Tell whether a reply shows that the model ignored the way in which it was asked for."""
    called = bool(reply.tool_calls or reply.invalid_tool_calls)
    cut = reply.response_metadata.get("finish_reason") == "length"
    # An object that was cut off shows that the server did hold its model to the form.
    return way != "text" and not called and not (cut and "{" in reply.text) and not reply.text.lstrip().startswith("{")


def retry(reply: AIMessage, problem: str, prompt: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that follow output that does not fit: what was written, and what is wrong. The fields that
    are wanted stand in the form, with which the prompt ends again.

    Args:
        reply: The output.
        problem: What is wrong with it.
        prompt: What was sent.
    """
    correction = f"That does not fit: {problem}\nGive all of it again, corrected."
    if reply.tool_calls and not reply.invalid_tool_calls:
        # An unanswered call makes the next request a 400, and so does an answer to a call without an id.
        calls = with_call_ids(reply, prompt).tool_calls
        answer = AIMessage(reply.text[:LONGEST], tool_calls=calls)
        return [answer, *(ToolMessage(correction, tool_call_id=call["id"], status="error") for call in calls)]
    written = reply.text or "\n".join(call["args"] or "" for call in reply.invalid_tool_calls)
    # Providers refuse an empty message.
    return [AIMessage(written[:LONGEST] or "(nothing)"), HumanMessage(correction)]
