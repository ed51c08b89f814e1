"""The form that a caller wants an answer in: a JSON schema of an object.

Schemas may come from strangers: patterns are matched in linear time, and no reference leaves the schema.
"""

import json
from functools import lru_cache
from typing import NoReturn

import jsonschema_rs
from pydantic import JsonValue

from reflective_agents.state.json_types import JsonMapping, JsonObject

LONGEST = 50_000
"""Characters that a schema may have."""
_TOLD = 5
"""Faults of an answer that are told at once."""


def check_schema(schema: JsonObject | None) -> JsonObject | None:
    """Return a schema that answers can be put into.

    Raises:
        ValueError: if it is not one; the text says why.
    """
    if schema is None:
        return None
    text = json.dumps(schema)
    if len(text) > LONGEST:
        raise ValueError(f"the schema has {len(text)} characters; at most {LONGEST} can be read")
    if schema.get("type") != "object":
        raise ValueError('the schema is not that of an object: give {"type": "object", "properties": {...}}')
    try:
        _validator(text)
    except ValueError as error:
        raise ValueError(f"not a valid JSON schema: {str(error).splitlines()[0]}") from error
    return schema


def faults(schema: JsonMapping, value: JsonValue) -> str:
    """Say in words what does not fit the schema; empty if all does."""
    found = [f"{'.'.join(map(str, e.instance_path)) or 'output'}: {e.message}" for e in _all(schema, value)]
    return "; ".join(found[:_TOLD])


def _all(schema: JsonMapping, value: JsonValue) -> list[jsonschema_rs.ValidationError]:
    return list(_validator(json.dumps(schema)).iter_errors(value))


@lru_cache(maxsize=32)
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    linear = jsonschema_rs.RegexOptions()
    return jsonschema_rs.Draft202012Validator(json.loads(schema), pattern_options=linear, retriever=_nothing)


def _nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not part of the schema")
