"""Answers in a form: filled by one more call, checked, and told apart from those that could not be had."""

import json
import re
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field, ValidationError, computed_field, field_validator
from typing_extensions import TypedDict

from reflective_agents import parsed
from reflective_agents.graphs import builder_of, graph_of
from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.graphs.lats import graph as lats
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

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


async def test_the_answer_stays_text_beside_the_form() -> None:
    result, model = await run(OSLO)
    assert result["structured_response"] == OSLO
    assert result["messages"][-1].text == result["answer"] == "It is 20 degrees."
    assert result["usage"]["model_calls"] == len(model.calls) == 2
    assert "It is 20 degrees." in model.calls[-1].text


async def test_a_form_that_does_not_fit_is_corrected() -> None:
    result, model = await run({"city": "Oslo", "degrees": -100}, OSLO)
    assert result["structured_response"] == OSLO
    assert "-100 is less than the minimum of -90" in model.calls[-1].text
    assert result["usage"]["parse_failures"] == 1


async def test_an_answer_that_fits_costs_no_call() -> None:
    result, model = await run(OSLO, text=json.dumps(OSLO))
    assert json.loads(result["answer"]) == result["structured_response"] == OSLO
    assert len(model.calls) == 1


async def test_an_answer_that_cannot_be_put_into_the_form_stays_as_it_is() -> None:
    result, model = await run({"city": "Oslo"})
    assert (result["answer"], result["structured_response"]) == ("It is 20 degrees.", None)
    assert result["outcome"]["status"] == "exhausted"
    before, _, why = result["outcome"]["reason"].partition("; the answer was not put into its form: ")
    assert before, "what is known of the answer is kept"
    assert why
    assert "verified_by" not in result["outcome"]
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
    assert result["structured_response"] == OSLO
    assert result["outcome"]["status"] == "limit_reached"
    assert len(model.calls) <= 7


async def test_any_object() -> None:
    def script(request: Request) -> Reply:
        return {"what": "ever"} if request.schema else "Well."

    settings: Any = {"model": FakeChatModel(reply=script), "answer_schema": {"type": "object"}}
    assert (await graph.ainvoke(ASK, context=settings))["structured_response"] == {"what": "ever"}


class Weather(BaseModel):
    """How warm it is."""

    city: str
    degrees: int

    @field_validator("city")
    @classmethod
    def _is_a_name(cls, city: str) -> str:
        if not city.istitle():
            raise ValueError("a city begins with a capital letter")
        return city


class WeatherDict(TypedDict):
    city: str
    degrees: int


@dataclass
class WeatherData:
    city: str
    degrees: int


class Region(BaseModel):
    city: str
    degrees: int
    parts: list["Region"] = []


@pytest.mark.parametrize("form", [Weather, WeatherDict, WeatherData, Region, FORM])
async def test_a_form_may_be_any_type_that_describes_an_object(form: Any) -> None:
    result, model = await run(OSLO, answer_schema=form)
    assert result["structured_response"] == (OSLO | {"parts": []} if form is Region else OSLO)
    assert len(model.calls) == 2


class Report(BaseModel):
    """Has what a model may leave out, spell otherwise, or add."""

    city: str = Field(alias="place")
    degrees: int
    unit: str = "Celsius"
    seen: date | None = None

    @computed_field
    def summary(self) -> str:
        """What nobody fills in."""
        return f"{self.city}: {self.degrees}"


@pytest.mark.parametrize("text", ["It is 20 degrees.", json.dumps({"place": "Oslo", "degrees": 20, "mood": "warm"})])
async def test_the_data_are_those_of_the_type(text: str) -> None:
    result, _ = await run({"place": "Oslo", "degrees": 20, "mood": "warm"}, text=text, answer_schema=Report)
    assert result["structured_response"] == {"place": "Oslo", "degrees": 20, "unit": "Celsius", "seen": None}
    assert parsed(result, Report) == Report(place="Oslo", degrees=20)


@pytest.mark.parametrize("form", [Weather, WeatherDict, WeatherData, Region])
async def test_an_answer_is_read_into_an_instance(form: type[Any]) -> None:
    result, _ = await run(OSLO, answer_schema=form)
    expected: Any = form(**OSLO)
    assert parsed(result, form) == expected


async def test_the_validators_of_a_class_send_a_form_back() -> None:
    result, model = await run({"city": "oslo", "degrees": 20}, OSLO, answer_schema=Weather)
    assert result["structured_response"] == OSLO
    assert "begins with a capital letter" in model.calls[-1].text


async def test_the_state_stays_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    kept = builder_of("chain_of_thought").compile(checkpointer=InMemorySaver())
    model = FakeChatModel(reply=lambda request: OSLO if request.schema else "It is 20 degrees.")
    config: Any = {"configurable": {"thread_id": "1"}}
    await kept.ainvoke(ASK, config, context={"model": model, "answer_schema": Weather})
    values = (await kept.aget_state(config)).values
    assert parsed(values, Weather) == Weather(**OSLO)
    assert type(values["settings"]["answer_schema"]) is dict


async def test_a_failed_run_leaves_nothing_in_the_form() -> None:
    model = FakeChatModel(reply=lambda _: "")
    result = await graph.ainvoke(ASK, context={"model": model, "answer_schema": Weather})
    assert (result["outcome"]["status"], result["structured_response"]) == ("failed", None)
    with pytest.raises(Misuse, match=re.escape(result["outcome"]["reason"])):
        parsed(result, Weather)


@pytest.mark.thorough
async def test_an_answer_outlives_the_next_question_that_fails_in_no_form() -> None:
    kept = builder_of("chain_of_thought").compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    works = FakeChatModel(reply=lambda request: OSLO if request.schema else "It is 20 degrees.")
    await kept.ainvoke(ASK, config, context={"model": works, "answer_schema": Weather})
    fails = FakeChatModel(reply=lambda request: "" if request.schema else "It is cold.")
    result = await kept.ainvoke(ASK, config, context={"model": fails, "answer_schema": Weather})
    assert (result["answer"], result["structured_response"]) == ("It is cold.", None)


@pytest.mark.thorough
async def test_without_a_form_a_failed_run_is_not_parsed() -> None:
    result = await graph.ainvoke(ASK, context={"model": FakeChatModel(reply=lambda _: "")})
    assert result["structured_response"] == result["outcome"]
    with pytest.raises(Misuse):
        parsed(result, Weather)


def population(city: str) -> str:
    """Count the people of a city."""
    return "700,000"


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("name", ["reflection", "trials", "best_of_n", "plan"])
@pytest.mark.parametrize("response_format", [ToolStrategy(Weather), ToolStrategy(WeatherDict)])
@pytest.mark.parametrize("form", [{}, {"answer_schema": Weather}])
async def test_an_agent_of_ones_own_may_answer_in_a_form(name: str, response_format: Any, form: dict[str, Any]) -> None:
    actor = FakeChatModel(reply=lambda _: ToolUse(response_format.schema.__name__, OSLO))
    agent = create_agent(actor, [population], response_format=response_format)
    settings: Any = {"model": "offline", "agent": agent, **form}
    result = await graph_of(name).ainvoke(ASK, context=settings)
    if name != "plan":  # which writes an answer of its own
        assert json.loads(result["answer"]) == result["structured_response"] == OSLO
    assert actor.calls
    assert result["outcome"]["status"] != "failed"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string"}, "not that of an object"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "not a valid JSON schema"),
        ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/a"}}}, "not part of the schema"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "not part of the schema"),
        ({"type": "object", "properties": {"a": {"pattern": "(a"}}}, "not a valid JSON schema"),
        ({"type": "object", "description": "x" * 50_000}, "at most 50000"),
    ],
)
def test_what_is_not_a_form_is_refused(schema: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Context(answer_schema=schema)


async def test_a_strategy_that_fails_as_an_agent_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_MAX_TOTAL_TOKENS", "1")
    settings: Any = {"model": "offline", "agent": graph, "max_total_tokens": 100_000}
    result = await graph_of("reflection").ainvoke(ASK, context=settings)
    assert result["answer"] is None
    assert "chain_of_thought gave no answer: max_total_tokens=1 " in result["outcome"]["reason"]
