"""JSON schemas of strangers, as the form of an answer and as the parameters of a tool: refused, or used at once."""

from typing import Any

import pytest
from pydantic import ValidationError

from bench.attack.schemas import OVERFLOWING, doubling, grammar, mesh
from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.graphs.react import graph as react
from reflective_agents.testing.fake import FakeChatModel

pytestmark = [pytest.mark.hostile, pytest.mark.process]

ASK: Any = {"messages": [("user", "What is LATS?")]}
TOO_LARGE: dict[str, Any] = {
    **{f"doubling {count}": doubling(count) for count in (11, 16, 22, 40, 400)},
    "doubling integers": doubling(16, {"type": "integer"}),
    "doubling unevaluated": {**doubling(12), "allOf": [{"$ref": "#/$defs/a12"}], "unevaluatedProperties": False},
    "mesh": mesh(10),
    "deep": {"type": "object", "properties": {"x": eval("{'not':" * 90 + "{}" + "}" * 90)}},
    "patterns": {"type": "object", "properties": {f"x{n}": {"pattern": rf"\w{{20}}{n}"} for n in range(1000)}},
    "pattern": {"type": "object", "properties": {"x": {"pattern": "((a{1000}){1000}){1000}"}}},
    "long": {"type": "object", "enum": [1] * 1_000_000},
}


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("schema", TOO_LARGE.values(), ids=TOO_LARGE.keys())
async def test_what_is_too_large_is_refused(schema: dict[str, Any]) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    cases: list[tuple[Any, Any]] = [(graph, {"answer_schema": schema}), (react, {"client_tools": [tool]})]
    for strategy, settings in cases:
        with pytest.raises(ValidationError, match=r"the schema is too large: at most|not a valid JSON schema"):
            await strategy.ainvoke(ASK, context={"model": "offline", **settings})


def properties(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


NUMBERS = {"type": "array", "minItems": 1000}
STRANGE: dict[str, dict[str, Any]] = {
    "overflowing": OVERFLOWING,
    "grammar": grammar(5),
    "largest": doubling(9),
    "itself": {"type": "object", "$ref": "#"},
    "all of itself": {"type": "object", "allOf": [{"$ref": "#"}]},
    "dynamic": {"type": "object", "$dynamicAnchor": "n", "allOf": [{"$dynamicRef": "#n"}]},
    "anything": properties(a=True, b={"type": "array", "items": False}, c={"anyOf": [True]}),
    "nothing": properties(a={"enum": []}, b=False),
    "large numbers": properties(a={"minimum": 10**400}, b={"type": "integer", "minimum": 0, "maximum": 10**400}),
    "small steps": properties(a={"type": "number", "multipleOf": 1e-300, "minimum": 1e300}),
    "many": properties(a={**NUMBERS, "items": {**NUMBERS, "items": {**NUMBERS, "items": NUMBERS}}}),
    "long": properties(a={"minLength": 10**12}, b={"type": "array", "minItems": 10**9}),
    "backtracking": properties(x={"type": "string", "pattern": "^(a+)+$"}),
}


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("schema", STRANGE.values(), ids=STRANGE.keys())
@pytest.mark.parametrize("way", ["json_schema", "tool", "text"])
async def test_what_is_strange_is_used(schema: dict[str, Any], way: str) -> None:
    def reply(request: Any) -> Any:
        return {"x": "a" * 20_000 + "!"} if request.schema == "Answer" else "a" * 20_000

    for model in ("offline", FakeChatModel(reply=reply)):
        settings: Any = {"model": model, "structured": way, "answer_schema": schema}
        result = await graph.ainvoke(ASK, context=settings)
        assert result["outcome"]["status"] in ("answered", "solved", "exhausted"), result["outcome"]
