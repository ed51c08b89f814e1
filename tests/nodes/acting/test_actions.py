"""Reading a step that was written as text, and tools as actions in text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from reflective_agents.environments.game24 import Game24
from reflective_agents.environments.registry import get_environment
from reflective_agents.nodes.acting.actions import ActionStep, act_tool
from reflective_agents.nodes.acting.agent_prompt import with_repetitions_marked
from reflective_agents.nodes.acting.react_text import as_call, describe_tools, parse_step
from reflective_agents.prompts.react import KNOWN


@pytest.mark.parametrize(
    ("text", "thought", "action", "answer"),
    [
        ("Thought: Look.\nAction: Search[x]", "Look.", "Search[x]", None),
        ("Look.\n Action 12 : Search[x]", "Look.", "Search[x]", None),
        ("Look.\nAction: search\nAction Input: x y", "Look.", "search[x y]", None),
        ('Look.\nAction 1: search\nAction Input 1:\n{\n"a": [1]\n}', "Look.", 'search[{\n"a": [1]\n}]', None),
        ("thought 3: Done.\nFINAL ANSWER: 42", "Done.", "", "42"),
        ("Done.\nFinal Answer: two\nlines", "Done.", "", "two\nlines"),
        ("Action: Search[x]\nFinal Answer: y", "", "Search[x]", None),
        ("Final Answer: y\nAction: Search[x]", "", "", "y\nAction: Search[x]"),
        ("Action: a[1]\nObservation: 2\nAction: b[2]", "", "a[1]", None),
        ("Observation 1: 2\nFinal Answer: 2", "", "", None),
        ("Action: ```python\nx = 1\n```", "", "```python\nx = 1\n```", None),
        ("**Thought:** Look.\n**Action 5:** calculator[2]", "Look.", "calculator[2]", None),
        ("1. Action: `search[x]`", "", "search[x]", None),
        ("### Thought\nLook.\n### Action\nsearch[x]", "Look.", "search[x]", None),
        ("思考：找。\n行动：search［北京］", "找。", "search[北京]", None),
        ("思考：好。\n最终答案：北京", "好。", "", "北京"),
        ("Gedanke: Gut.\nAntwort: Berlin", "Gut.", "", "Berlin"),
        ("I look it up. Action: search[x]", "I look it up.", "search[x]", None),
        ("I look it up.\nsearch[x]", "I look it up.", "search[x]", None),
        (
            '{"name": "search", "arguments": {"query": "x"}}',
            "",
            '{"name": "search", "arguments": {"query": "x"}}',
            None,
        ),
        ("Action: a[1]\nThought: more\nAction: b[2]", "", "a[1]", None),
        ("**Final Answer: 413**", "", "", "413"),
        ("**<Final Answer: 413>**", "", "", "413"),
        ("<thought>So.</thought>\n<action>search[x]</action>", "So.", "search[x]", None),
        ("## Action 2:\nsearch[x]", "", "search[x]", None),
        ("Thought 2: I need it. Action 2: calculate: 3 * 4", "I need it.", "calculate: 3 * 4", None),
        ("Done. **Final Answer:** 413", "Done.", "", "413"),
        ("Thought 3: Done.\nAction 3: Final Answer: 413", "Done.", "", "413"),
        ("Done.\n行动：最终答案：北京", "Done.", "", "北京"),
        ("Action: search[x]\nObservation 1: none\nFinal Answer: no", "", "search[x]", None),
        ("I read fly[x] once.", "I read fly[x] once.", "", None),
        ("The Action: was taken.", "The Action: was taken.", "", None),
        ("Final Answer:  ", "", "", None),
        ("", "", "", None),
    ],
)
def test_forms_of_a_step(text: str, thought: str, action: str, answer: str | None) -> None:
    move = parse_step(text, ["search"])
    assert (move["thought"], move["action"], move["answer"]) == (thought, action, answer)


def test_an_action_needs_no_label_where_it_cannot_be_a_thought() -> None:
    for environment, text, action in [
        ("arithmetic", "I need the rate.\ncalculate: 8 - 2", "calculate: 8 - 2"),
        ("arithmetic", "Thought 1: Calculate: 8 - 2 = 6", "Calculate: 8 - 2 = 6"),
        ("arithmetic", "The tank holds 120 litres.", ""),
        ("arithmetic", "calculate: 8 - 2\nAction: calculate: 6 * 2", "calculate: 6 * 2"),
        ("questions", "I look it up.\nsearch[Otis]", "search[Otis]"),
        ("questions", "I look it up [again].", ""),
        ("game24", "2 * 3 = 6 (left: 4 6)", "2 * 3 = 6 (left: 4 6)"),
        ("game24", "2 * 3 = 6\nis not enough.", ""),
        ("crosswords", "A fruit.\nh1. apple", "h1. apple"),
        ("blocksworld", "It is clear.\npick up the red block", "pick up the red block"),
        ("programming", "It doubles x.", ""),
    ]:
        assert parse_step(text, environment=get_environment(environment))["action"] == action


@given(st.text())
def test_any_text_is_read_as_at_most_one_of_action_and_answer(text: str) -> None:
    move = parse_step(text)
    assert not (move["action"] and move["answer"])


@given(st.text(alphabet='abc[]{}": \n'))
def test_nothing_after_an_observation_is_read(text: str) -> None:
    assert parse_step(f"So.\nAction: a[1]\nObservation: {text}") == parse_step("So.\nAction: a[1]")


def test_tools_are_described_by_their_first_line_and_signature() -> None:
    @tool
    def weigh(thing: str, unit: str = "kg") -> str:
        """Weigh a thing.

        With care.
        """
        return thing + unit

    assert describe_tools([weigh]).startswith('weigh[thing: string, unit: string = "kg"]: Weigh a thing.\n')
    assert "Final Answer" in describe_tools([])


def test_an_environment_is_declared_with_its_actions() -> None:
    declared = act_tool(Game24())
    assert declared.name == "act"
    assert Game24.actions in declared.description
    assert set(declared.args) == {"action"}


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


@tool
def look(query: str, pages: int = 1) -> str:
    """Look something up."""
    return query * pages


@pytest.mark.parametrize(
    ("action", "name", "args"),
    [
        ("multiply[12, 750]", "multiply", {"a": 12, "b": 750}),
        ("multiply(12, 750)", "multiply", {"a": 12, "b": 750}),
        ("Multiply(a=12, b=750)", "multiply", {"a": 12, "b": 750}),
        ("multiply[a: 12, b: 750]", "multiply", {"a": 12, "b": 750}),
        ("multiply［12，750］", "multiply", {"a": 12, "b": 750}),
        ('multiply[{"a": 12, "b": 750}]', "multiply", {"a": 12, "b": 750}),
        ('{"name": "multiply", "arguments": {"a": 12, "b": 750}}', "multiply", {"a": 12, "b": 750}),
        ("multiply[12, 750, 3]", "multiply", {"a": 12, "b": 750, "argument 3": 3}),
        ("multiply[12]", "multiply", {"a": 12}),
        ("multiply", "multiply", {}),
        ("look[Paris, the city]", "look", {"query": "Paris, the city"}),
        ('look("Paris, the city")', "look", {"query": "Paris, the city"}),
        ("look[query=Paris, pages=2]", "look", {"query": "Paris", "pages": 2}),
        ("look[a [b] c] and then more]", "look", {"query": "a [b] c"}),
        ("look[x = 1]", "look", {"query": "x = 1"}),
        ('{"action": "look", "action_input": "Paris"}', "look", {"query": "Paris"}),
        ("Look: Paris, the city", "look", {"query": "Paris, the city"}),
        ("look Paris", "look", {"query": "Paris"}),
        ("fly[x]", "fly", {"input": "x"}),
        ("fly: x", "fly: x", {"input": ""}),
    ],
)
def test_forms_of_a_call(action: str, name: str, args: dict[str, Any]) -> None:
    call = as_call(action, [multiply, look]).tool_calls[0]
    assert (call["name"], call["args"]) == (name, args)


@given(st.text(alphabet="look[](){}\"',=:1 \n"))
def test_any_action_becomes_one_call(action: str) -> None:
    assert len(as_call(action, [multiply, look]).tool_calls) == 1


def test_what_was_found_before_is_marked_and_keeps_its_images() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    shown = ToolMessage([image], tool_call_id="1")
    taken = ActionStep(thought="", action="look()", observation="", valid=True, messages=[AIMessage(""), shown])
    first, again = with_repetitions_marked([taken, taken])
    assert first == taken
    assert again["messages"][-1].content == [image, KNOWN]
