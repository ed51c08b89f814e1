"""Answers in a form: filled by one more call, checked, and told apart from those that could not be had."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.graphs.lats import graph as lats
from reflective_agents.state.context import Context
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer", "minimum": -90}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
pytestmark = pytest.mark.process

ASK: dict[str, Any] = {"messages": [("user", "How warm is it in Oslo?")]}
OSLO = {"city": "Oslo", "degrees": 20}


async def run(*forms: Reply, text: str = "It is 20 degrees.", **settings: Any) -> tuple[Any, FakeChatModel]:
    """Answer with a text, then fill in these forms one after another."""

    def script(request: Request) -> Reply:
        if request.schema != "Answer":
            return text
        return forms[min(sum("does not fit" in str(m.text) for m in request.messages), len(forms) - 1)]

    model = FakeChatModel(reply=script)
    context: Any = {"model": model, "answer_schema": FORM, **settings}
    return await graph.ainvoke(ASK, context=context), model


async def test_the_answer_is_the_form() -> None:
    result, model = await run(OSLO)
    assert json.loads(result["answer"]) == OSLO
    assert result["messages"][-1].text == result["answer"]
    assert result["usage"]["model_calls"] == len(model.calls) == 2
    assert "It is 20 degrees." in model.calls[-1].text


async def test_a_form_that_does_not_fit_is_corrected() -> None:
    result, model = await run({"city": "Oslo", "degrees": -100}, OSLO)
    assert json.loads(result["answer"]) == OSLO
    assert "-100 is less than the minimum of -90" in model.calls[-1].text
    assert result["usage"]["parse_failures"] == 1


async def test_an_answer_that_fits_costs_no_call() -> None:
    result, model = await run(OSLO, text=json.dumps(OSLO))
    assert json.loads(result["answer"]) == OSLO
    assert len(model.calls) == 1


async def test_an_answer_that_cannot_be_put_into_the_form_stays_as_it_is() -> None:
    result, model = await run({"city": "Oslo"})
    assert result["answer"] == "It is 20 degrees."
    assert result["outcome"]["status"] == "exhausted"
    assert "not put into its form: " in result["outcome"]["reason"]
    assert (len(model.calls), result["usage"]["parse_failures"]) == (4, 3)


async def test_a_call_is_kept_for_the_form() -> None:
    def script(request: Request) -> Reply:
        if request.schema == "Answer":
            return OSLO
        judged = {"reasoning": "No.", "score": 0.3, "solved": False}
        return judged if request.schema == "Judgement" else f"Answer {request.index} of {len(request.messages)}"

    model = FakeChatModel(reply=script)
    settings: Any = {
        "model": model,
        "answer_schema": FORM,
        "max_model_calls": 7,
        "n": 2,
        "search": "none",
        "grading": "each",
    }
    result = await lats.ainvoke(ASK, context=settings)
    assert json.loads(result["answer"]) == OSLO
    assert result["outcome"]["status"] == "limit_reached"
    assert len(model.calls) <= 7


async def test_any_object() -> None:
    def script(request: Request) -> Reply:
        return {"what": "ever"} if request.schema else "Well."

    settings: Any = {"model": FakeChatModel(reply=script), "answer_schema": {"type": "object"}}
    assert json.loads((await graph.ainvoke(ASK, context=settings))["answer"]) == {"what": "ever"}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string"}, "not that of an object"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "not a valid JSON schema"),
        ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/a"}}}, "not part of the schema"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "not part of the schema"),
        ({"type": "object", "properties": {"a": {"pattern": "(a"}}}, "not a valid JSON schema"),
        ({"type": "object", "description": "x" * 50_000}, "at most 50000"),
    ],
)
def test_what_is_not_a_form_is_refused(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Context(answer_schema=schema)
