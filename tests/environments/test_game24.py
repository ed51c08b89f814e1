"""The game of 24: by hand, for any numbers, and against the recorded runs."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.environments.base import State, Task, Transition
from reflective_agents.environments.game24 import Game24, check_expression, check_step, legal_steps, parse_step, solve
from reflective_agents.state.errors import Misuse
from reflective_agents.tools.arithmetic import evaluate

GAME = Game24()
NUMBERS = st.lists(st.integers(0, 13), min_size=1, max_size=4)


def task(numbers: str) -> Task:
    return {"id": numbers, "question": numbers}


async def run(numbers: str, *actions: str) -> Transition:
    transition = Transition(GAME.start(task(numbers)), "")
    for action in actions:
        transition = await GAME.step(transition.state, action)
        assert transition.valid, transition.observation
    return transition


async def test_a_whole_game() -> None:
    won = await run("4 5 6 10", "4 * 5 = 20 (left: 6 10 20)", "10 - 6 = 4 (left: 4 20)", "20 + 4 = 24")
    assert won[1:] == ("Left: 24. That is 24.", 1.0, True, True)
    assert GAME.public(won.state) == (
        "Numbers: 4 5 6 10\n4 * 5 = 20 (left: 6 10 20)\n10 - 6 = 4 (left: 4 20)\n20 + 4 = 24 (left: 24)\nLeft: 24"
    )
    assert GAME.answer(won.state) == "((4 * 5) + (10 - 6))"
    assert GAME.score(task("4 5 6 10"), GAME.answer(won.state)) == {"solved": 1.0}
    assert GAME.answer(won.state) == "((4 * 5) + (10 - 6))"
    assert GAME.score(task("4 5 6 10"), GAME.answer(won.state)) == {"solved": 1.0}
    assert legal_steps(won.state) == []


async def test_an_answer_ends_a_game_at_any_time() -> None:
    end = await run("4 5 6 10", "4 * 5 = 20 (left: 6 10 20)", "Answer: (4 * 5) + (10 - 6) = 24")
    assert end[1:] == ("That is 24.", 1.0, True, True)
    assert GAME.answer(end.state) == "(4 * 5) + (10 - 6)"


async def test_a_dead_end() -> None:
    end = await run("4 5", "4 + 5 = 9")
    assert end[1:] == ("Left: 9. That is not 24, and no step is left.", 0.0, True, True)


async def test_fractions_are_exact() -> None:
    path = await run("1 5 5 5", "1 / 5 = 0.2 (left: 0.2 5 5)", "5 - 1/5 = 24/5 (left: 4.8 5)", "4.8 * 5 = 24")
    assert path.state["numbers"] == ["24"]
    thirds = await run("3 3 8 8", "8 / 3 = 8/3 (left: 8/3 3 8)", "3 - 8/3 = 1/3", "8 / (1/3) = 24 (left: 24)")
    assert (thirds.reward, GAME.answer(thirds.state)) == (1.0, "(8 / (3 - (8 / 3)))")
    assert GAME.key((await run("8 3 2", "8 / 3 = 8/3")).state) == "2 8/3"


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("4 + 7 = 11", "There is no 7 among what is left: 4 5 6 10."),
        ("4 + 4 = 8", "There is no 4 among what is left: 4 5 6 10."),
        ("4 + 5 = 10", "4 + 5 is 9, not 10."),
        ("10 / 6 = 1.67", "10 / 6 is 5/3, not 1.67."),
        ("4 + 5 = 9 (left: 9 10)", "After this step 6 9 10 would be left, not 9 10."),
        ("4 + 5 = 9 (left: )", "After this step 6 9 10 would be left, not nothing."),
        ("4 + 5", "No step and no answer can be read in this."),
        ("11 / 8 ≈ 1.375 (left: 1.375 7)", "No step and no answer can be read in this."),
        ("4 + 5 = 9 (left: " + "1" * 5_000, "No step and no answer can be read in this."),
        ("Answer: None", "'None' is no arithmetic expression."),
        ("Answer: 4 / (5 - 5)", "Division by zero is not possible."),
    ],
)
async def test_what_is_wrong_is_refused_with_the_reason(action: str, why: str) -> None:
    state = GAME.start(task("4 5 6 10"))
    refused = await GAME.step(state, action)
    assert (refused.state, refused.reward, refused.done, refused.valid) == (state, None, False, False)
    assert refused.observation == why


async def test_division_by_zero_is_refused() -> None:
    refused = await GAME.step(GAME.start(task("0 5")), "5 / 0 = 0")
    assert refused.observation.startswith("Division by zero")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("4 * 5 + 10 - 6", None),
        ("(10-6)+5*4 = 24", None),
        ("4 * 5 + 10", "each of the numbers once"),
        ("4 * 6 * 5 / 5 + 10 - 10", "each of the numbers once"),
        ("4 * 5 + 6 - 10", "The answer is 16, not 24."),
        ("4 * 5 + (10 - 6", "no arithmetic expression"),
        ("4 ** 5 + 10 - 6", "nothing else"),
        ("4 // 5 + 10 - 6", "nothing else"),
    ],
)
async def test_answers(expression: str, why: str | None) -> None:
    left = expression.partition("=")[0].strip()
    found = check_expression(["4", "5", "6", "10"], left)
    assert found == why or (why is not None and found is not None and why in found)
    assert GAME.score(task("4 5 6 10"), f"Steps\nAnswer: {expression}") == {"solved": float(why is None)}
    answered = await GAME.step(GAME.start(task("4 5 6 10")), f"Answer: {expression}")
    assert answered.reward == (None if "(10 - 6" in expression and why else float(why is None))


@pytest.mark.parametrize("numbers", ["", "4 x", "1 2 3 4 5 6 7", "4.5 3"])
def test_tasks_of_another_kind_are_refused(numbers: str) -> None:
    with pytest.raises(Misuse, match="whole numbers"):
        GAME.start(task(numbers))


def test_equivalent_actions() -> None:
    assert GAME.canonical("5 + 4 = 9") == GAME.canonical("4+5 = 9 (left: 6 9 10)") != GAME.canonical("4 * 5 = 20")
    assert GAME.canonical("10 - 4 = 6") != GAME.canonical("4 - 10 = -6")
    assert GAME.canonical("4 + 0.5 = 4.5") == GAME.canonical("4 + 1/2 = 9/2")
    assert GAME.canonical("Answer: (4 + 5)*2 = 24") == GAME.canonical("answer: ( 4 + 5 ) * 2")


async def test_back_ticks_may_stand_anywhere() -> None:
    start = GAME.start(task("4 9 10 13"))
    done = await GAME.step(start, "`13 + 9 = 22` (left: 4 10 22)")
    assert (done.valid, done.observation) == (True, "Left: 4 10 22.")
    assert GAME.canonical("`13 + 9 = 22` (left: 4 10 22)") == GAME.canonical("13 + 9 = 22")
    ended = await GAME.step(start, "Answer: `(13 - 9) * (10 - 4) = 24`")
    assert (ended.reward, GAME.answer(ended.state)) == (1.0, "(13 - 9) * (10 - 4)")


@given(numbers=NUMBERS, choices=st.lists(st.integers(0, 99), max_size=4))
@settings(deadline=None)
async def test_legal_steps_keep_the_exact_value(numbers: list[int], choices: list[int]) -> None:
    state: State = GAME.start(task(" ".join(map(str, numbers))))
    for choice in choices:
        actions = legal_steps(state)
        if not actions:
            break
        transition = await GAME.step(state, actions[choice % len(actions)])
        assert transition.valid
        state = transition.state
        if not state["answer"]:
            values = [evaluate(term) for term in state["terms"]]
            assert values == [Fraction(number) for number in state["numbers"]] == sorted(values)
            used = re.findall(r"\d+", " ".join(state["terms"]))
            assert Counter(map(int, used)) == Counter(numbers)


@pytest.mark.thorough
@given(NUMBERS)
@settings(deadline=None, max_examples=20)
async def test_the_solver_agrees_with_a_search_over_the_legal_steps(numbers: list[int]) -> None:
    words = [str(number) for number in numbers]
    solution = solve(words)
    assert solution is None or check_expression(words, solution) is None
    assert (solution is not None) == await reachable(" ".join(words), legal_steps)


async def reachable(numbers: str, proposals: Callable[[State], Any]) -> bool:
    """Say whether 24 can be reached by what is proposed in each state."""
    pending, seen = [GAME.start(task(numbers))], set()
    while pending:
        state = pending.pop()
        if state["numbers"] == ["24"]:
            return True
        if state["done"] or GAME.key(state) in seen:
            continue
        seen.add(GAME.key(state))
        transitions = [await GAME.step(state, proposal) for proposal in proposals(state)]
        pending += [transition.state for transition in transitions if transition.valid]
    return False


@pytest.mark.thorough
def test_recorded_games_can_be_solved(load: Callable[[str], Any]) -> None:
    for record in load("tot_game24_bfs"):
        numbers = record["task"]["input"].split()
        solution = solve(numbers)
        assert solution is not None
        assert check_expression(numbers, solution) is None


@pytest.mark.thorough
async def test_recorded_proposals(load: Callable[[str], Any], expected: Callable[[str], Any]) -> None:
    proposals: dict[str, list[str]] = defaultdict(list)
    lines, unreadable, illegal = 0, 0, 0
    for record in load("game24_llm_cache"):
        numbers = re.findall(r"-?\d+(?:/\d+)?", record["key"])
        for line in "\n".join(record.get("texts", [])).splitlines():
            step = parse_step(line)
            lines += 1
            unreadable += step is None
            illegal += step is not None and check_step([Fraction(number) for number in numbers], step) is not None
            proposals[record["key"]].append(line)
    assert unreadable / lines == pytest.approx(0.07, abs=0.01)
    assert illegal / lines == pytest.approx(0.22, abs=0.02)
    tasks = [record["task"]["input"] for record in load("tot_game24_bfs")]
    reached = [await reachable(numbers, lambda state: proposals.get(GAME.key(state), [])) for numbers in tasks]
    assert sum(reached) == expected("game24_llm_cache")["reachable_valid_24"]


def solved(record: Any, text: str) -> bool:
    return GAME.score(task(record["task"]["input"]), text)["solved"] == 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tot_game24_cot100", "tot_game24_io100"])
def test_recorded_samples(name: str, load: Callable[[str], Any], expected: Callable[[str], Any]) -> None:
    figures = expected(name)
    records = load(name)
    won = [[solved(record, output["text"]) for output in record["outputs"]] for record in records]
    assert ["".join(str(int(reward)) for reward in row) for row in won] == [
        record["verdict"]["r"] for record in records
    ]
    agreed = 0
    for record, row in zip(records, won, strict=True):
        last = [output["text"].strip().split("\n")[-1] for output in record["outputs"]]
        votes = Counter(re.sub(r"\s+", "", line.lower().replace("answer: ", "")) for line in last)
        agreed += solved(record, votes.most_common(1)[0][0])
        assert len(row) == 100
    assert {
        "n": len(won),
        "mean_success": round(sum(map(sum, won)) / 100 / len(won), 4),
        "best_of_100": sum(map(any, won)),
        "self_consistency_100": agreed,
        "first_sample": sum(row[0] for row in won),
    } == figures


def test_recorded_searches(load: Callable[[str], Any], expected: Callable[[str], Any]) -> None:
    figures = expected("tot_game24_bfs")
    won = [[solved(record, text) for text in record["final"]] for record in load("tot_game24_bfs")]
    assert (len(won), sum(map(any, won)), sum(row[0] for row in won)) == (
        figures["n"],
        figures["success_any"],
        figures["success_first"],
    )


@pytest.mark.parametrize("label", ["answer:", "**Answer:**", "Final Answer:", "答案：", "Antwort:"])
async def test_an_answer_has_the_labels_of_all_answers(label: str) -> None:
    action = f"{label} (4 * 5) + (10 - 6) = 24"
    assert (await GAME.step(GAME.start(task("4 5 6 10")), action)).reward == 1.0
    assert GAME.canonical(action) == "answer:(4*5)+(10-6)"
    assert GAME.score(task("4 5 6 10"), action) == {"solved": 1.0}
