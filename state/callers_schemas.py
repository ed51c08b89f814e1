"""JSON schemas of callers, who may be strangers: bounded before anything compiles, expands or sends them.

A schema of 1 kB can stand for gigabytes, when each of its definitions refers twice to the one before. So references are
put in place here, and everything is counted meanwhile. What a value has to fit is compiled and checked elsewhere: see
`reflective_agents.tools.schema_faults`.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from pydantic import JsonValue

from reflective_agents.state.json_types import JsonMapping, JsonObject

DEEPEST = 64
"""Objects and lists of a schema that lie within one another, its references put in place."""
PATTERN_BYTES = 100_000
"""Size of a compiled pattern."""
_NAMES_AND_UNUSED = 4
"""How many times as many values as are used may be read, with the names and what nothing refers to."""
_DEFINITIONS = ("$defs", "definitions", "$schema")
"""What a schema needs no more when its references are put in place."""


class Bounds(NamedTuple):
    """How much several schemas may hold together."""

    characters: int = 50_000
    values: int = 5_000
    """Objects, lists, texts and numbers, the references put in place."""
    patterns: int = 100
    """Regular expressions."""


SINGLE = Bounds()


def check_form(schema: JsonObject | None) -> JsonObject | None:
    """Return a schema that an answer can be put into.

    Raises:
        ValueError: if it is not one; the text says why.
    """
    return schema if schema is None else check_forms([schema], SINGLE)[0]


def check_forms(schemas: Sequence[JsonObject], bounds: Bounds) -> Sequence[JsonObject]:
    """Return schemas of objects, such as those of tools.

    Raises:
        ValueError: if one is not, or they are too much; the text says why.
    """
    if any(schema.get("type") != "object" for schema in schemas):
        raise ValueError('the schema is not that of an object: give {"type": "object", "properties": {...}}')
    expanded(schemas, bounds)
    return schemas


def expanded(schemas: Sequence[JsonMapping], bounds: Bounds = SINGLE) -> Sequence[JsonObject]:
    """Return schemas with their references put in place, as models are shown them.

    A reference back into what it stands in is left out. Takes at most some 50 ms, whatever the schemas are.

    Args:
        schemas: JSON schemas of the draft 2020-12. Their references may lead to parts of themselves alone.
        bounds: How much they may hold together.

    Returns:
        The schemas, not to be changed.

    Raises:
        ValueError: if they hold more, or one is not valid; the text says what, and the bound.
    """
    # First, since what is too deep ends in `json.dumps` in a RecursionError, which names no bound.
    patterns = _patterns(schemas, bounds)
    return _expanded(json.dumps(schemas, allow_nan=False), tuple(patterns), bounds)


def check_size(schemas: Sequence[JsonMapping], bounds: Bounds) -> None:
    """Refuse schemas that hold too much, their references put in place. They need not be valid: what a tool of
    somebody else's declares is read by the provider, with more patience.

    Raises:
        ValueError: if they hold more, or refer to something else than parts of themselves.
    """
    _patterns(schemas, bounds)
    expansion = _Expansion(bounds.values)
    for schema in schemas:
        expansion.of({**schema})


@lru_cache(maxsize=32)
def _expanded(schemas: str, patterns: Sequence[str], bounds: Bounds) -> Sequence[JsonObject]:
    import jsonschema_rs  # late, since few callers have a schema

    read = json.loads(schemas)
    expansion = _Expansion(bounds.values)
    linear = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES)
    expanded = [expansion.of(schema) for schema in read]
    try:
        for schema in read:
            # A `$schema` would have it held against another draft than the one that everything else reads it as.
            of_draft = {name: part for name, part in schema.items() if name != "$schema"}
            jsonschema_rs.meta.validate(of_draft)
        for pattern in patterns:
            jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=linear)
    except ValueError as error:
        raise ValueError(f"not a valid JSON schema: {str(error).splitlines()[0][:300]}") from error
    return expanded


def _patterns(schemas: Sequence[JsonMapping], bounds: Bounds) -> list[str]:
    """Return the regular expressions of schemas, and make sure that they are neither long, nor deep, nor many."""
    patterns = list[str]()
    for count, (value, depth) in enumerate(_walk(schemas, bounds.characters)):
        _bounded("names and values", count, _NAMES_AND_UNUSED * bounds.values)
        if isinstance(value, dict):
            patterns += _patterns_of(value)
        _bounded("patterns", len(patterns), bounds.patterns)
        _bounded("levels", depth, DEEPEST)
    return patterns


def _walk(schemas: Sequence[JsonMapping], most: int) -> Iterator[tuple[JsonValue, int]]:
    """Yield every value and every name with its depth, as long as there are not too many characters."""
    left: list[tuple[JsonValue, int]] = [(dict(schema), 1) for schema in schemas]
    characters = 0
    while left:
        value, depth = left.pop()
        characters += len(value) if isinstance(value, str | dict | list) else 1
        _bounded("characters", characters, most)
        yield value, depth
        if isinstance(value, dict | list):
            left += [(part, depth + 1) for part in value]
        if isinstance(value, dict):
            left += [(part, depth + 1) for part in value.values()]


def _patterns_of(schema: JsonObject) -> list[str]:
    patterns: list[str] = []
    if isinstance(pattern := schema.get("pattern"), str):
        patterns.append(pattern)
    if isinstance(named := schema.get("patternProperties"), dict):
        patterns += named
    return patterns


def _bounded(what: str, count: int, most: int) -> None:
    if count > most:
        raise ValueError(f"the schema is too large: at most {most} {what} can be read")


class _Expansion:
    """Puts references in place until there are too many values.

    Args:
        most: Values that all schemas may have together.
    """

    def __init__(self, most: int) -> None:
        self._most, self._values = most, 0

    def of(self, schema: JsonObject) -> JsonObject:
        """Return a schema with its references put in place."""
        used = {name: part for name, part in schema.items() if name not in _DEFINITIONS}
        return self._object(used, schema, ("#",))

    def _value(self, value: JsonValue, schema: JsonObject, path: tuple[str, ...]) -> JsonValue:
        if isinstance(value, dict):
            return self._object(value, schema, path)
        self._count(path)
        if isinstance(value, list):
            return [self._value(part, schema, (*path, "")) for part in value]
        return value

    def _object(self, value: JsonObject, schema: JsonObject, path: tuple[str, ...]) -> JsonObject:
        self._count(path)
        parts: JsonObject = {}
        for name, part in value.items():
            if name != "$ref":
                parts[name] = self._value(part, schema, (*path, ""))
        if "$ref" not in value or value["$ref"] in path:
            return parts
        reference = value["$ref"]
        target = self._object(_target(schema, reference), schema, (*path, reference))
        # What stands beside a reference holds as well, and wins over what it leads to.
        return {**target, **parts}

    def _count(self, path: tuple[str, ...]) -> None:
        self._values += 1
        _bounded("values, references put in place,", self._values, self._most)
        _bounded("levels, references put in place,", len(path), DEEPEST)


def _target(schema: JsonObject, reference: JsonValue) -> JsonObject:
    """Return the part of a schema that a reference leads to: `#/$defs/a`, a JSON pointer."""
    part: JsonValue = schema
    try:
        if not isinstance(reference, str) or not (reference + "/").startswith("#/"):
            raise KeyError(reference)
        for segment in reference.split("/")[1:]:
            name = unquote(segment).replace("~1", "/").replace("~0", "~")
            part = part[int(name)] if isinstance(part, list) else part[name]  # type: ignore[index]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"the reference {str(reference)[:100]!r} is not part of the schema") from error
    if not isinstance(part, dict):
        raise ValueError(f"the reference {reference[:100]!r} leads to no schema")
    return part
