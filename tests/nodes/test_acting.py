"""Reading a step that was written as text, and tools as actions in text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool

from environments.game24 import Game24
from nodes.acting import act_tool, describe, read_move


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
        ("The Action: was taken.", "The Action: was taken.", "", None),
        ("Final Answer:  ", "", "", None),
        ("", "", "", None),
    ],
)
def test_forms_of_a_step(text: str, thought: str, action: str, answer: str | None) -> None:
    move = read_move(text)
    assert (move["thought"], move["action"], move["answer"]) == (thought, action, answer)


@given(st.text())
def test_any_text_is_read_as_at_most_one_of_action_and_answer(text: str) -> None:
    move = read_move(text)
    assert not (move["action"] and move["answer"])


@given(st.text(alphabet='abc[]{}": \n'))
def test_nothing_after_an_observation_is_read(text: str) -> None:
    assert read_move(f"So.\nAction: a[1]\nObservation: {text}") == read_move("So.\nAction: a[1]")


def test_tools_are_described_by_their_first_line_and_arguments() -> None:
    @tool
    def weigh(thing: str, unit: str = "kg") -> str:
        """Weigh a thing.

        With care.
        """
        return thing + unit

    assert describe([weigh]).startswith("weigh[thing, unit]: Weigh a thing.\n")
    assert "Final Answer" in describe([])


def test_an_environment_is_declared_with_its_actions() -> None:
    declared = act_tool(Game24())
    assert declared.name == "act"
    assert Game24.actions in declared.description
    assert set(declared.args) == {"action"}
