"""Votes over next steps: what counts as the same, and which sample is taken."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool

from reflective_agents.environments.base import Environment
from reflective_agents.environments.game24 import Game24
from reflective_agents.nodes.acting.react_text import ParsedStep, parse_step, parsed_call
from reflective_agents.nodes.asking.ballot import elect


@tool
def search(query: str, pages: int = 1) -> str:
    """Search the web."""
    return query + str(pages)


TOOLS: list[BaseTool] = [search]


def call(name: str, **args: Any) -> ParsedStep:
    return parsed_call(AIMessage("", tool_calls=[{"name": name, "args": args, "id": "1"}]))


def parsed(text: str) -> ParsedStep:
    return parsed_call(AIMessage(text))


BROKEN = parsed_call(
    AIMessage(
        "", invalid_tool_calls=[{"name": "search", "args": "{", "id": "1", "error": "", "type": "invalid_tool_call"}]
    )
)


def winner(*moves: ParsedStep, environment: Environment | None = None) -> tuple[int, int]:
    """The place of the sample that is taken, and its votes."""
    move, votes = elect(moves, environment, TOOLS, "How high is it?")
    return next(number for number, candidate in enumerate(moves) if candidate is move), votes


def test_calls_are_the_same_by_name_and_arguments() -> None:
    moon = [call("search", query="The Moon"), call("search", query=" the  moon")]
    assert winner(call("search", query="sun"), *moon) == (1, 2)
    assert winner(call("look", query="the moon"), *moon) == (1, 2)
    assert winner(call("search", query="sun"), call("search", query="moon", pages=2)) == (0, 1)
    assert winner(parsed("1"), call("search", pages=2, query="x"), call("search", query="x", pages=2.0)) == (1, 2)


def test_several_calls_of_a_step_count_together_in_any_order() -> None:
    calls = [{"name": "search", "args": {"query": query}, "id": query} for query in "ab"]
    both = [parsed_call(AIMessage("", tool_calls=order)) for order in (calls, calls[::-1])]
    assert winner(call("search", query="a"), *both) == (1, 2)


def test_who_wants_to_answer_agrees_first_and_then_on_the_answer() -> None:
    assert winner(call("search", query="a"), parsed("829"), parsed("828"), parsed("828")) == (2, 2)
    assert winner(call("search", query="a"), call("search", query="a"), parsed("828")) == (0, 2)


def test_what_cannot_be_read_votes_only_if_nothing_can() -> None:
    assert winner(BROKEN, BROKEN, call("search", query="a")) == (2, 1)
    assert winner(BROKEN, BROKEN) == (0, 2)


@pytest.mark.parametrize("written", ["search[The moon]", 'search(query="the moon")', "Search[the  moon]"])
def test_calls_written_as_text_are_read_first(written: str) -> None:
    texts = ["search[sun]", "search[the moon]", written]
    assert winner(*(parse_step(f"Thought: look.\nAction: {text}") for text in texts)) == (1, 2)


def test_an_environment_says_which_actions_come_to_the_same() -> None:
    steps = ["4 + 5 = 9 (left: 6 9 10)", "10 - 4 = 6 (left: 5 6 6)", "5 + 4 = 9"]
    assert Game24().canonical(steps[0]) == Game24().canonical(steps[2])
    assert winner(*(parse_step(f"Action: {text}") for text in steps), environment=Game24()) == (0, 2)
    assert winner(*(call("act", action=text) for text in steps), environment=Game24()) == (0, 2)
