"""JSON schemas of callers: what they are shown to models as, and what is refused before it is expanded."""

from typing import Any

import pytest
from pydantic import ValidationError

from bench.attack.schemas import doubling, mesh
from reflective_agents.state.callers_schemas import DEEPEST, SINGLE, Bounds, expanded
from reflective_agents.state.settings.react import ReactContext

TEXT = {"type": "string"}


def expand(schema: dict[str, Any], bounds: Bounds = SINGLE) -> dict[str, Any]:
    return expanded([{"type": "object", **schema}], bounds)[0]


def test_references_are_put_in_place() -> None:
    schema = {
        "$defs": {"a/b": TEXT, "list": {"items": {"$ref": "#/$defs/a~1b"}}, "all": {"anyOf": [TEXT, {"type": "null"}]}},
        "properties": {
            "x": {"$ref": "#/$defs/list", "description": "Some."},
            "y": {"$ref": "#/$defs/all/anyOf/1"},
            "z": {"anyOf": [{"$ref": "#/$defs/a~1b"}]},
        },
    }
    assert expand(schema)["properties"] == {
        "x": {"items": TEXT, "description": "Some."},
        "y": {"type": "null"},
        "z": {"anyOf": [TEXT]},
    }


def test_a_reference_back_is_left_out() -> None:
    tree = {"$defs": {"node": {"properties": {"child": {"$ref": "#/$defs/node"}, "name": TEXT}}}}
    node = {"properties": {"child": {}, "name": TEXT}}
    assert expand({**tree, "properties": {"root": {"$ref": "#/$defs/node"}}})["properties"] == {"root": node}
    assert expand({"properties": {"same": {"$ref": "#"}}})["properties"] == {"same": {}}


def test_what_fits_the_bounds_exactly_is_taken() -> None:
    flat = {"properties": {f"x{number}": True for number in range(7)}}
    assert len(expand(flat, Bounds(values=10))["properties"]) == 7
    with pytest.raises(ValueError, match="at most 9 values"):
        expand(flat, Bounds(values=9))


@pytest.mark.parametrize(
    ("schema", "bound"),
    [
        (doubling(10), "at most 5000 values"),
        (doubling(500), f"at most {DEEPEST} levels"),
        (mesh(10), "at most 5000 values"),
        (
            {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "not": eval("[" * 64 + "]" * 64)},
            "levels",
        ),
        ({"enum": [1] * 1_000_000}, "at most 50000 characters"),
        ({"properties": {"x" * 50_000: {}}}, "at most 50000 characters"),
        ({"properties": {f"x{n}": {"pattern": f"a{n}"} for n in range(101)}}, "at most 100 patterns"),
        ({"patternProperties": {f"a{n}": {} for n in range(101)}}, "at most 100 patterns"),
    ],
    ids=["doubling", "deep doubling", "mesh", "deep", "long list", "long name", "patterns", "names by patterns"],
)
def test_more_is_refused_with_the_bound(schema: dict[str, Any], bound: str) -> None:
    with pytest.raises(ValueError, match=bound):
        expand(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "strin"}}},
        {"properties": {"a": {"pattern": "(a"}}},
        {"properties": {"a": {"pattern": "(?=a)b"}}},
        {"properties": {"a": {"pattern": "(a{1000}){1000}"}}},
        {"patternProperties": {"(a)\\1": {}}},
        {"enum": ["\ud800"]},
    ],
    ids=str,
)
def test_what_no_linear_validator_reads_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a valid JSON schema"):
        expand(schema)


REFERENCES = [
    "http://127.0.0.1:9/a",
    "file:///etc/passwd",
    "other",
    "#name",
    "#/$defs/none",
    "#/required/7",
    "#/title",
    7,
    {},
]


@pytest.mark.parametrize("reference", REFERENCES, ids=str)
def test_a_reference_leads_to_a_part_of_the_schema(reference: object) -> None:
    with pytest.raises(ValueError, match="the reference"):
        expand({"required": ["a"], "title": "t", "properties": {"a": {"$ref": reference}}})


def test_tools_are_bounded_together() -> None:
    def tools(count: int) -> list[Any]:
        wide = {"type": "object", "properties": {f"x{number}": {"type": "string"} for number in range(50)}}
        return [{"type": "function", "function": {"name": f"t{n}", "parameters": wide}} for n in range(count)]

    assert len(ReactContext(client_tools=tools(90)).client_tools) == 90
    with pytest.raises(ValidationError, match="at most 10000 values"):
        ReactContext(client_tools=tools(100))
