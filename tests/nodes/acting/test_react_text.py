"""Answers inside texts: where they stand, and when two are the same."""

import pytest

from reflective_agents.environments.actions import find_answer
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.registry import get_environment
from reflective_agents.nodes.acting.react_text import parse_answer
from reflective_agents.nodes.asking.task_prompt import articles_text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Think.\nAnswer: Paris", "Paris"),
        ("Answer: Lyon? No.\nAnswer: Paris\nThat is it.", "Paris"),
        ("Final Answer:   Paris \n", "Paris"),
        ("So Finish[Paris]. Answer: Lyon", "Paris"),
        ("FINISH [Paris", ""),
        ("Think.\n\nParis\n", "Paris"),
        ("", ""),
    ],
)
def test_where_an_answer_stands(text: str, answer: str) -> None:
    assert find_answer(text) == answer


@pytest.mark.parametrize("environment", ["programming", "crosswords"])
def test_programs_and_boards_are_whole_texts(environment: str) -> None:
    assert get_environment(environment).find_answer(" Answer: 1\nx = 2\n") == "Answer: 1\nx = 2"


@pytest.mark.parametrize(
    ("text", "environment", "answer"),
    [
        ("Final Answer: two\nlines", "", "two\nlines"),
        ("Thought: So.\nAnswer: two", "questions", "two"),
        ("It is a\nlong story.", "", "It is a\nlong story."),
        ("Action: Search[Paris]", "", None),
        ("Action: Search[Paris]", "questions", None),
        ("Action 3: Finish[Paris]", "questions", "Paris"),
        ("Action 3: Answer: 2 * 12 = 24", "game24", "2 * 12 = 24"),
        ("Action 3: 2 * 12 = 24", "game24", None),
        ("Action: ```python\nx = 1\n```", "programming", "```python\nx = 1\n```"),
        ("", "questions", None),
    ],
)
def test_the_best_answer_of_an_agent(text: str, environment: str, answer: str | None) -> None:
    assert parse_answer(text, get_environment(environment) if environment else None) == answer


def test_material_is_what_the_task_brings() -> None:
    assert articles_text({}) == articles_text({"task": {"id": "1"}}) == ""
    supporting = [["Moon", ["It pulls.", " It shines."]], ["Sun", ["Hot."]]]
    assert (
        articles_text({"task": {"data": {"supporting": supporting}}}) == "Moon: It pulls. It shines.\n\nSun: Hot.\n\n"
    )


@pytest.mark.parametrize(
    ("text", "answer"),
    [("So.\n17 + 65 = 80 + 2 = 82", "82"), ("Answer: (3 - 1) * 4 = 8", "8"), ("y = 2", "y = 2"), ("=" * 50, "=" * 50)],
)
def test_the_result_of_a_calculation_is_the_answer(text: str, answer: str) -> None:
    assert PLAIN.find_answer(text) == answer
