"""JSON schemas that are short and stand for much, or for ever."""

from typing import Any


def doubling(count: int, leaf: Any = None, keyword: str = "allOf") -> dict[str, Any]:
    """Return a schema of 2 to the power of so many parts: each definition refers twice to the one before."""
    parts: dict[str, Any] = {"a0": leaf or {"type": "string"}}
    for number in range(count):
        parts[f"a{number + 1}"] = {keyword: [{"$ref": f"#/$defs/a{number}"}] * 2}
    return {"type": "object", "$defs": parts, "properties": {"x": {"$ref": f"#/$defs/a{count}"}}}


def mesh(count: int) -> dict[str, Any]:
    """Return a schema each of whose definitions refers to all of them."""
    names = [f"a{number}" for number in range(count)]
    links = {"properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}}
    return {"type": "object", "$defs": dict.fromkeys(names, links), "properties": {"x": {"$ref": "#/$defs/a0"}}}


def grammar(operators: int) -> dict[str, Any]:
    """Return a schema of nested terms that has each term of a value tried with each operator, again within each."""
    term = {"$ref": "#/$defs/term"}
    terms = [{"properties": {"l": term, "op": {"const": n}}, "required": ["op"]} for n in range(operators)]
    return {"type": "object", "$defs": {"term": {"anyOf": terms}}, "properties": {"x": term}}


OVERFLOWING = {
    "type": "object",
    "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}], "unevaluatedProperties": False}},
    "properties": {"x": {"$ref": "#/$defs/a"}},
}
"""A schema on which the validator overflows its stack, and ends its process."""
