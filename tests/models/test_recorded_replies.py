"""What is read in recorded replies of two small models, against labels that a person gave them from the text alone.

A label is what a reply says, or None where nothing can be read in it. To read something else is wrong, which is worse
than to refuse a reply that says something.
"""

import gzip
import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from pydantic import BaseModel, Field, create_model

from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs.chain_of_thought import read
from reflective_agents.models.structured import read_form
from reflective_agents.models.toolless import read_written_calls
from reflective_agents.nodes.acting.react_text import parse_step

FORMS: dict[int, dict[str, Any] | None] = {
    **dict.fromkeys((0, 13, 14, 15, 19, 20, 25, 26, 28, 29, 30, 32, 33, 37, 38, 44, 48, 49, 53), None),
    41: {"search_queries": 3},
    42: {"search_queries": 3, "references": 3},
    43: {"search_queries": 1},
    47: {"score": 0, "accept": False},
    51: {"judgements": 1},
    52: {"judgements": 2},
}
"""Forms by the number of the record: some of their figures, of lists the length."""
ANSWERS = {11: "21", 16: "4", 18: "229", 21: "17", 22: "4", 23: None, 27: "90", 31: None}
"""Answers at the end of a chain of thought."""
CUT_OFF = {27}
"""Replies that say something and are refused, since they were cut off."""
STEPS = (5, 6)
"""Steps of an agent as text, in which there is neither an action nor an answer."""
PROSE = (17, 24, 39, 40, 45, 50)
"""Answers in prose where tools could be called: none is a call."""

Record = dict[str, Any]


@pytest.fixture
def records(recorded: Path) -> list[Record]:
    with gzip.open(recorded / "small_models.dev.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def replies(record: Record) -> list[AIMessage]:
    """The replies of a record, as a client makes them."""
    made = []
    for choice in record["choices"]:
        message = AIMessage(choice.get("content") or "", response_metadata={"finish_reason": choice["finish_reason"]})
        for call in choice.get("tool_calls") or []:
            name, written = call["function"]["name"], call["function"]["arguments"]
            try:
                message.tool_calls.append(tool_call(name=name, args=json.loads(written), id=call["id"]))
            except ValueError as error:
                broken = invalid_tool_call(name=name, args=written, id=call["id"], error=str(error))
                message.invalid_tool_calls.append(broken)
        made.append(message)
    return made


PLAIN_TYPES: dict[str, Any] = {"string": str, "integer": int, "boolean": bool}


def schema_of(name: str, form: dict[str, Any]) -> type[BaseModel]:
    """The form that was asked for, which need not be that of today."""
    fields: dict[str, Any] = {field: (type_of(field, part), ...) for field, part in form["properties"].items()}
    made: type[BaseModel] = create_model(name, **fields)
    return made


def type_of(name: str, part: dict[str, Any]) -> Any:
    if part["type"] == "object":
        return schema_of(name, part)
    if part["type"] == "array":
        return list[type_of(name, part["items"])]  # type: ignore[misc]
    if part["type"] == "number":
        return Annotated[float, Field(ge=part.get("minimum"), le=part.get("maximum"))]
    return PLAIN_TYPES[part["type"]]


def figures(form: BaseModel, names: dict[str, Any]) -> dict[str, Any]:
    values = {name: getattr(form, name) for name in names}
    return {name: len(value) if isinstance(value, list) else value for name, value in values.items()}


@pytest.mark.parametrize("number", FORMS)
def test_a_form_is_read_where_there_is_one(records: list[Record], number: int) -> None:
    (tool,) = records[number]["tools"]
    (reply,) = replies(records[number])
    form, problem = read_form(reply, schema_of(tool["name"], tool["parameters"]))
    label = FORMS[number]
    assert (form and figures(form, label or {})) == label, problem


@pytest.mark.parametrize("number", ANSWERS)
def test_an_answer_is_read_or_refused(records: list[Record], number: int) -> None:
    (reply,) = replies(records[number])
    read_answer, label = read(reply, PLAIN, "")["normal"], ANSWERS[number]
    assert read_answer == ("" if label is None or number in CUT_OFF else label)


@pytest.mark.parametrize("number", STEPS)
def test_no_step_is_found_where_there_is_none(records: list[Record], number: int) -> None:
    (reply,) = replies(records[number])
    move = parse_step(reply.text, ["calculator"])
    assert (move["action"], move["answer"]) == ("", None)


@pytest.mark.parametrize("number", PROSE)
def test_prose_is_no_call(records: list[Record], number: int) -> None:
    tools = records[number]["tools"]
    shown = [{"type": "function", "function": tool} for tool in tools]
    for reply in replies(records[number]):
        assert read_written_calls(reply, shown, labelled=False) == reply
