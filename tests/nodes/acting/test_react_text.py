"""Answers inside texts: where they stand, and when two are the same."""

import pytest

from reflective_agents.environments.actions import find_answer
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.registry import get_environment
from reflective_agents.nodes.acting.react_text import action_of, parse_answer
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


TRACE = "Thought 1: So.\nAction 1: calculate: 2 * 3\nObservation 1: 2 * 3 = 6\nThought 2: That is it."


@pytest.mark.parametrize(
    ("text", "environment", "answer"),
    [
        (f"{TRACE}\nFinal Answer: 6", "arithmetic", "6"),
        (f"{TRACE}\nFinal Answer: 6", "", "6"),
        (f"{TRACE}\nAction 2: Final Answer: 6", "arithmetic", "6"),
        (f"{TRACE}\nAction 2: Answer: 6", "arithmetic", "6"),
        (f"{TRACE} Final Answer: 6", "arithmetic", "6"),
        (f"{TRACE}\nAction 2: Final Answer: 5\nFinal Answer: 6", "arithmetic", "6"),
        (f"{TRACE}\nFinal Answer: 6\nThought 3: Done.", "arithmetic", "6"),
        (f"{TRACE}\nFinal Answer: 6\n\nQuestion: What is 7 * 2?\n{TRACE}\nFinal Answer: 14", "arithmetic", "6"),
        (f"{TRACE}\n<Final Answer: 6 apples>", "arithmetic", "6 apples"),
        (f"{TRACE}\nAnswer: 6", "", "6"),
        (f"{TRACE}\nAction 2: Finish[six]", "questions", "six"),
        (f"{TRACE}\nFinal Answer: ...", "arithmetic", "6"),
        (TRACE, "arithmetic", "6"),
        ("Thought 2: So.\nAction 2: calculate: 2 + half of 8", "arithmetic", None),
        (TRACE, "", None),
        ("思考：好。\n行动：计算：2 * 3\n观察：6\n最终答案：6", "arithmetic", "6"),
        ("Final Answer: 6\n\nIt is twice 3.", "arithmetic", "6"),
        ("Final Answer: a list:\nAction: rest.\nQuestion: none.", "", "a list:\nAction: rest."),
        ("Final Answer:\nPlan:\npick up the red block", "blocksworld", "Plan:\npick up the red block"),
    ],
)
def test_the_answer_at_the_end_of_an_invented_trace(text: str, environment: str, answer: str | None) -> None:
    assert parse_answer(text, get_environment(environment) if environment else None) == answer


@pytest.mark.parametrize(
    ("answer", "environment", "action"),
    [
        ("6\nIt is twice 3.", "arithmetic", "Answer: 6"),
        ("Paris\nIt is the capital.", "questions", "Finish[Paris]"),
        ("x = 1\ny = 2", "programming", "x = 1\ny = 2"),
        ("", "arithmetic", ""),
    ],
)
def test_the_action_that_gives_an_answer(answer: str, environment: str, action: str) -> None:
    assert action_of(answer, get_environment(environment)) == action


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
