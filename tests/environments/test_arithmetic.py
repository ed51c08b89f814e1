"""Arithmetic questions: the steps, how numbers are read, and the reward."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.environments.arithmetic import Arithmetic, final_number
from reflective_agents.environments.base import Example, State, Task, Transition
from reflective_agents.state.errors import Misuse
from reflective_agents.tools.arithmetic import exact

WORLD = Arithmetic()
TASK: Task = {"id": "a", "question": "A box holds 6 rows of 8 pens. How many are in 2 boxes?", "gold": "96"}


async def run(state: State, *actions: str) -> Transition:
    transition = Transition(state, "")
    for action in actions:
        transition = await WORLD.step(transition.state, action)
        assert transition.valid, transition.observation
    return transition


async def test_a_whole_task() -> None:
    start = WORLD.start(TASK)
    counted = await run(start, "calculate: 6 * 8")
    assert counted[1:] == ("6 * 8 = 48", None, False, True)
    noted = await run(counted.state, "Question: How many are in\n two boxes? Answer: 2 * 48 = 96")
    assert noted[1:] == ("Noted.", None, False, True)
    assert WORLD.public(noted.state) == (
        f"Question: {TASK['question']}\ncalculate: 6 * 8 = 48\nQuestion: How many are in two boxes? Answer: 2 * 48 = 96"
    )
    assert WORLD.answer(noted.state) == ""
    end = await run(noted.state, "Answer: 96 pens")
    assert end[1:] == ("Finished.", 1.0, True, True)
    assert WORLD.answer(end.state) == "96 pens"
    assert (await run(noted.state, "Answer: 48")).reward == 0.0


async def test_without_the_right_answer_there_is_no_reward() -> None:
    task: Task = {"id": "a", "question": TASK["question"]}
    end = await run(WORLD.start(task), "Answer: 96")
    assert (end.reward, end.done, WORLD.score(task, "96")) == (None, True, {})


async def test_calculations_are_exact_and_a_wrong_result_is_not_believed() -> None:
    for action, observation in {
        "calculate: 0.1 + 0.2 = 0.4": "0.1 + 0.2 = 0.3",
        "Calculate: $1,200 / 7": "1200 / 7 = 1200/7 (about 171.429)",
        "calculate:\N{MINUS SIGN}3 \N{MULTIPLICATION SIGN} 4": "-3 \N{MULTIPLICATION SIGN} 4 = -12",
    }.items():
        assert (await run(WORLD.start(TASK), action)).observation == observation


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("calculate: six", "'six' is not a number."),
        ("calculate: 25", "This is a number, no calculation. If it is what the question asks for, answer with it."),
        ("calculate: 1 / 0", "Division by zero is not possible."),
        ("calculate: 9 ** 9 ** 9", "The numbers become too large."),
        ("Answer: plenty", "The answer must be a number."),
        ("Answer:", "The answer must be a number."),
        ("answer", "The answer must be a number."),
        ("Question: How many?", "No calculation and no answer can be read in this."),
        ("Question: How many? Answer:", "No calculation and no answer can be read in this."),
        ("The answer is to be calculated.", "No calculation and no answer can be read in this."),
        ("96", "This is a number, no calculation. If it is what the question asks for, answer with it."),
        ("...", "No calculation and no answer can be read in this."),
    ],
)
async def test_what_is_wrong_is_refused_with_the_reason(action: str, why: str) -> None:
    state = WORLD.start(TASK)
    refused = await WORLD.step(state, action)
    assert refused.observation == why
    assert (refused.state, refused.reward, refused.done, refused.valid) == (state, None, False, False)


@pytest.mark.parametrize(
    ("written", "answer"), [("100 - 4", "96"), ("100 - 4 = 96 km", "96"), ("It is 96 km.", "It is 96 km.")]
)
async def test_an_answer_that_is_a_calculation_is_what_it_comes_to(written: str, answer: str) -> None:
    end = await run(WORLD.start(TASK), f"Answer: {written}")
    assert (end.reward, WORLD.answer(end.state)) == (1.0, answer)


@pytest.mark.parametrize("action", ["96", "calculate: 96", "calculate: 96.0", "calculate: 96 kilometres"])
async def test_a_number_alone_that_the_last_step_came_to_is_the_answer(action: str) -> None:
    end = await run(WORLD.start(TASK), "calculate: 100 - 4", action)
    assert (end.reward, end.done, WORLD.answer(end.state)) == (1.0, True, "96")


async def test_a_number_alone_that_an_earlier_step_came_to_is_refused() -> None:
    before = await run(WORLD.start(TASK), "calculate: 100 - 4", "calculate: 4 * 4")
    refused = await WORLD.step(before.state, "calculate: 96")
    assert (refused.state, refused.done, refused.valid) == (before.state, False, False)


READ = {
    "48": "48",
    "48.0": "48",
    "$48": "48",
    "1,000": "1000",
    "$1,234,567.50": "1234567.5",
    "48%": "48",
    "It is 48 metres.": "48",
    "of 60 apples, 48.": "48",
    "#### 48": "48",
    "**48**": "48",
    "\\boxed{48}": "48",
    "6 * 8 = 48": "48",
    "6 * 8": "48",
    "x = 96 / 2": "48",
    "48 = x": "48",
    "about 3/4": "0.75",
    "-5": "-5",
    "\N{MINUS SIGN}5 degrees": "-5",
    "\N{EURO SIGN}2.50": "2.5",
    "a range of 3-4": "4",
    "": None,
    "none": None,
    "A4": None,
    "1/0": None,
    "1,5": "1.5",
    "1,500": "1500",
    "\uff14\uff18": "48",
    "1\u00bd": "1.5",
    "48 (4 dozen)": "48",
    "It is 48 metres (with 2 rolls)": "48",
    "(12 - 4) * 6": "48",
    "9" * 2_000: None,
}


@pytest.mark.parametrize(("text", "number"), READ.items())
def test_numbers_are_read_as_they_are_written(text: str, number: str | None) -> None:
    read = final_number(text)
    assert (None if read is None else exact(read)) == number
    if number is not None:
        assert WORLD.score({**TASK, "gold": number}, text) == {"correct": 1.0}
        assert WORLD.score({**TASK, "gold": "7"}, text) == {"correct": 0.0}


@pytest.mark.thorough
@given(st.text(max_size=200))
def test_every_text_is_an_answer(text: str) -> None:
    assert WORLD.score(TASK, text)["correct"] in (0, 1)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_every_number_is_read_back(number: Any) -> None:
    assert final_number(f"It comes to {number:,} in all.") == final_number(f"{number}") == final_number(f"${number:,}")


async def test_equal_results_are_equal_states() -> None:
    start = WORLD.start(TASK)
    first, same, other = [
        (await run(start, f"calculate: {text}")).state for text in ("80 * (1 - 0.25)", "80 * 0.75", "80 * 0.7")
    ]
    assert WORLD.key(first) == WORLD.key(same) != WORLD.key(other)
    assert WORLD.key(start) == ""
    further = [(await run(state, "calculate: 60 - 10")).state for state in (first, other)]
    assert WORLD.key(further[0]) != WORLD.key(further[1])


def test_equivalent_actions() -> None:
    assert WORLD.canonical("Answer: $48.00 ") == WORLD.canonical("answer: 6 * 8") == "answer:48"
    assert WORLD.canonical("calculate: 6 * 8 = 48") == WORLD.canonical("Calculate:6*8")
    assert WORLD.canonical("calculate: 6 * 8") != WORLD.canonical("calculate: 8 * 6")
    assert WORLD.canonical("Question: How  many? Answer: 2") == WORLD.canonical("question: how many? answer: 2")


def test_a_right_answer_that_is_no_number_is_refused() -> None:
    with pytest.raises(Misuse, match="must be a number"):
        WORLD.start({**TASK, "gold": "many"})


@pytest.mark.parametrize("example", WORLD.examples[:2])
async def test_examples_are_what_happens(example: Example) -> None:
    task: Task = {"id": "e", "question": example.task.removeprefix("Question: "), "gold": read_gold(example)}
    state = WORLD.start(task)
    assert WORLD.public(state) == example.task
    for _, action, observation in example.acts:
        transition = await WORLD.step(state, action)
        assert transition.observation == (observation or "Finished.")
        state = transition.state
    assert transition.reward == 1


def read_gold(example: Example) -> str:
    return WORLD.find_answer(example.reasoning)


@pytest.mark.parametrize(
    "action",
    [
        "answer: 96",
        "**Answer:** 96",
        "Final Answer: 96 pens",
        "答案：96",
        "Antwort: 96",
        "1. Answer: 96",
        "Finish[96]",
        "The answer is 96 pens.",
        "**The final answer is 96**",
        "<Answer: 96>",
        "Answer: 96 pens\n2 boxes hold them.",
    ],
)
async def test_an_answer_has_the_labels_of_all_answers(action: str) -> None:
    assert (await WORLD.step(WORLD.start(TASK), action)).state["answer"].startswith("96")
    assert WORLD.canonical(action) == "answer:96"


async def test_a_smaller_question_has_the_labels_of_all_questions() -> None:
    noted = await WORLD.step(WORLD.start(TASK), "问题：两盒有几支？ 答案：96")
    assert noted.state["steps"] == ["Question: 两盒有几支？ Answer: 96"]
