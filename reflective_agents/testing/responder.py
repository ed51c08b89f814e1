"""A script without a model: fills in forced schemas from their JSON schema, and answers plainly otherwise."""

from typing import Any

from reflective_agents.state.json_types import JsonObject
from reflective_agents.testing.script import Reply, Request, ToolUse


def respond(request: Request) -> Reply:
    """Fill in what is forced; the first tool if any will do; otherwise repeat the beginning of the last message."""
    if request.schema is not None:
        return fill(request.schemas[request.schema])
    if request.as_json:
        return {}
    if request.tool_choice == "required":
        return ToolUse(request.tools[0], fill(request.schemas[request.tools[0]]))
    return f"You said: {request.last[:200]}"


def fill(schema: JsonObject) -> JsonObject:
    """Fill in the arguments that a JSON schema of an object asks for, as well as the schema alone allows."""
    return {name: _value(part, name, schema.get("$defs", {})) for name, part in schema.get("properties", {}).items()}


def _value(schema: JsonObject, name: str, definitions: JsonObject) -> Any:
    """Fill in a value: text names its property, numbers are maximal, booleans true, lists as short as allowed."""
    if "$ref" in schema:
        return _value(definitions[schema["$ref"].rsplit("/", 1)[-1]], name, definitions)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if options := schema.get("anyOf") or schema.get("allOf"):
        return _value(options[0], name, definitions)
    match schema.get("type"):
        case "object":
            return fill({"$defs": definitions, **schema})
        case "array":
            return [_value(schema["items"], name, definitions) for _ in range(schema.get("minItems", 0))]
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("maximum", schema.get("minimum", 1))
        case "null":
            return None
        case _:
            return f"The {name.replace('_', ' ')} of the built-in responder."
