"""Blocksworld: the rules, the solver, and the recorded tasks with their plans."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.environments.base import Example, State, Task, Transition
from reflective_agents.environments.blocks import check_facts, parse_move, read_plan
from reflective_agents.environments.blocksworld import Blocksworld, legal_actions, progress, solve
from reflective_agents.environments.blocksworld_rows import facts_of_plan, read_task
from reflective_agents.nodes.acting.actions import take
from reflective_agents.state.errors import Misuse

WORLD = Blocksworld()
INIT = ["on red blue", "ontable blue", "ontable white", "clear red", "clear white", "handempty"]
PLAN = [
    "unstack the red block from on top of the blue block",
    "stack the red block on top of the white block",
    "pick up the blue block",
    "stack the blue block on top of the red block",
]
Load = Callable[[str], list[dict[str, Any]]]


def task(goal: list[str], init: list[str] = INIT, **data: Any) -> Task:
    return {"id": "b", "question": "", "data": {"init": init, "goal": goal, **data}}


TOWER = task(["on blue red", "on red white"], shortest=4)


async def run(state: State, *actions: str) -> Transition:
    transition = Transition(state, "")
    for action in actions:
        transition = await WORLD.step(transition.state, action)
        assert transition.valid, transition.observation
    return transition


async def test_a_whole_task() -> None:
    start = WORLD.start(TOWER)
    assert WORLD.public(start) == (
        "Now: the red block is clear, the white block is clear, the hand is empty, the red block is on top of the blue "
        "block, the blue block is on the table and the white block is on the table.\n"
        "Goal: the blue block is on top of the red block and the red block is on top of the white block."
    )
    lifted = await run(start, PLAN[0])
    assert WORLD.answer(lifted.state) == ""
    assert lifted[1:] == (
        "Now: the blue block is clear, the white block is clear, the hand is holding the red block, the blue block is "
        "on the table and the white block is on the table. Of the goal, 0% holds.",
        None,
        False,
        True,
    )
    half = await run(lifted.state, *PLAN[1:3])
    assert (progress(half.state), half.observation.endswith("Of the goal, 50% holds.")) == (0.5, True)
    end = await run(half.state, PLAN[3])
    assert end[1:] == ("The goal is reached.", 1.0, True, True)
    assert (progress(end.state), legal_actions(end.state)) == (1.0, [])
    assert WORLD.answer(end.state) == "\n".join(PLAN)
    assert WORLD.score(TOWER, WORLD.answer(end.state)) == {"solved": 1.0, "optimal": 1.0}


HOLDING = [PLAN[0]]


@pytest.mark.parametrize(
    ("before", "action", "why"),
    [
        ([], "pick up the red block", "Not possible: the red block is not on the table."),
        ([], "pick up the blue block", "Not possible: the blue block is not clear."),
        ([], "put down the white block", "Not possible: the hand is not holding the white block."),
        ([], "stack the white block on top of the red block", "Not possible: the hand is not holding the white block."),
        (
            [],
            "unstack the white block from on top of the blue block",
            "Not possible: the white block is not on top of the blue block.",
        ),
        (HOLDING, "pick up the white block", "Not possible: the hand is not empty."),
        (
            HOLDING,
            "unstack the white block from on top of the red block",
            "Not possible: the white block is not on top of the red block and the hand is not empty.",
        ),
        (HOLDING, "stack the red block on top of the red block", "A block cannot lie on itself."),
        ([], "pick up the green block", "There is no green block."),
        ([], "stack the red block on top of the table", "There is no table block."),
        ([], "move the red block", "No action can be read in this."),
        ([], "stack the red block", "No action can be read in this."),
        ([], "pick down the red block", "No action can be read in this."),
        ([], "\n".join(PLAN), "No action can be read in this."),
    ],
)
async def test_what_is_not_possible_is_refused_with_the_reason(before: list[str], action: str, why: str) -> None:
    state = (await run(WORLD.start(TOWER), *before)).state
    refused = await WORLD.step(state, action)
    assert refused.observation == why
    assert (refused.state, refused.reward, refused.done, refused.valid) == (state, None, False, False)


def test_equivalent_actions() -> None:
    for same in ("(stack red blue)", "Stack the red block on the blue block.", "stack red blue"):
        assert WORLD.canonical(same) == "stack the red block on top of the blue block"
    for same in (
        "(unstack red blue)",
        "unstack the red block from the blue block",
        " UNSTACK red from on top of blue ",
    ):
        assert WORLD.canonical(same) == "unstack the red block from on top of the blue block"
    assert WORLD.canonical("pick-up red") == WORLD.canonical("pick up red from the table") == "pick up the red block"
    for action in ("put-down red", "(put down the red block on the table)"):
        assert WORLD.canonical(action) == "put down the red block"
    assert WORLD.canonical("Fly  away") == "fly away"
    assert parse_move("pick up the block") is None


@pytest.mark.parametrize(
    ("plan", "observation", "reward"),
    [
        ([*PLAN], "The goal is reached.", 1.0),
        (PLAN[:3], "The plan does not reach the goal. Now: the red block is clear, the hand is holding the blue", 0.0),
        (
            [PLAN[0], *PLAN[2:]],
            "pick up the blue block: Not possible: the hand is not empty.",
            0.0,
        ),
    ],
)
async def test_a_whole_plan_ends_the_task(plan: list[str], observation: str, reward: float) -> None:
    later = (await run(WORLD.start(TOWER), "pick up the white block")).state
    action = WORLD.final_action("\n".join(plan))
    for state in (WORLD.start(TOWER), later):
        end = await run(state, action)
        assert (end.reward, end.done) == (reward, True)
        assert end.observation.startswith(observation)
        assert WORLD.answer(end.state) == "\n".join(plan)
        assert WORLD.score(TOWER, WORLD.answer(end.state))["solved"] == reward
    assert WORLD.canonical(action) == WORLD.canonical("plan: " + "\n".join(f"- {line.upper()}" for line in plan))
    assert (await WORLD.step(later, "Plan:\nwalk away")).observation.startswith("No plan can be read in this.")


@pytest.mark.parametrize(
    ("init", "why"),
    [
        ([], "needs data: init"),
        (["red on blue"], "'red on blue' is no fact"),
        (["on red red"], "'on red red' is no fact"),
        ([fact for fact in INIT if fact != "clear red"], "contradict"),
        ([*INIT, "clear blue"], "contradict"),
        ([*INIT, "ontable red"], "contradict"),
        ([*INIT, "holding red"], "contradict"),
        ([fact for fact in INIT if fact != "handempty"], "contradict"),
        (["on red blue", "on blue red", "handempty"], "of no state"),
        (["on red blue", "clear red", "handempty"], "of no state"),
    ],
)
def test_impossible_worlds_are_refused(init: list[str], why: str) -> None:
    with pytest.raises(Misuse, match=why):
        WORLD.start(task(["on red white"], init))


@pytest.mark.parametrize("goal", [[], ["on red green"], ["on red blue"], ["red"]])
def test_impossible_goals_are_refused(goal: list[str]) -> None:
    with pytest.raises(Misuse, match="the goal must be of its blocks, blue, red, white"):
        WORLD.start(task(goal))


def test_plans_are_read_as_they_are_written() -> None:
    moves = read_plan("\n".join(PLAN))
    assert moves is not None
    assert [str(move) for move in moves] == PLAN
    assert (
        read_plan("Here is the plan:\n[PLAN]\n" + "\n".join(f"{i}. {line}" for i, line in enumerate(PLAN, 1))) == moves
    )
    assert read_plan("\n".join([*PLAN, "stack the red block"])) is None
    assert read_plan("I do not know.") is None


@pytest.mark.parametrize(
    ("plan", "solved", "optimal"),
    [
        (PLAN, 1.0, 1.0),
        ([PLAN[0], "put down red", "pick up red", *PLAN[1:]], 1.0, 0.0),
        ([*PLAN, "unstack blue red"], 0.0, 0.0),
        (PLAN[:3], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
def test_plans_are_measured(plan: list[str], solved: float, optimal: float) -> None:
    answer = "\n".join(plan)
    assert WORLD.score(TOWER, answer) == {"solved": solved, "optimal": optimal}
    assert WORLD.score(task(["on blue red", "on red white"]), answer) == {"solved": solved}


@pytest.mark.thorough
@given(choices=st.lists(st.integers(0, 99), max_size=12))
@settings(deadline=None, max_examples=60)
async def test_legal_actions_are_all_and_lead_to_whole_worlds(choices: list[int]) -> None:
    state = WORLD.start(TOWER)
    blocks = ("red", "blue", "white")
    every = [f"pick up {a}" for a in blocks] + [f"put down {a}" for a in blocks]
    every += [f"{verb} {a} {b}" for verb in ("stack", "unstack") for a in blocks for b in blocks]
    for choice in choices:
        legal = legal_actions(state)
        taken = [action for action in every if (await take(WORLD, state, action)).valid]
        assert sorted(map(WORLD.canonical, taken)) == sorted(legal)
        if not legal:
            break
        state = (await WORLD.step(state, legal[choice % len(legal)])).state
        assert check_facts(state["facts"]) == set(blocks)
        plan = solve(state)
        assert plan is not None
        assert (await run(state, *plan)).state["done"]


def test_no_plan_for_what_cannot_be() -> None:
    assert solve(WORLD.start(task(["on red blue", "on blue red"]))) is None


@pytest.mark.parametrize("example", WORLD.examples)
async def test_examples_are_what_happens(example: Example) -> None:
    state = WORLD.start(task(["on blue red"], ["on red blue", "ontable blue", "clear red", "handempty"]))
    assert WORLD.public(state) == example.task
    for _, action, observation in example.acts:
        transition = await WORLD.step(state, action)
        assert transition.observation.startswith(observation or "The goal is reached.")
        state = transition.state
    assert bool(state["done"]) is example.solved
    assert WORLD.score(state["task"], WORLD.find_answer(example.reasoning))["solved"] == example.solved


async def test_recorded_plans(load: Load, expected: Callable[[str], dict[str, Any]]) -> None:
    accepted = 0
    for record in load("bench_rap_blocksworld"):
        given, plan = read_task(record), record["gold_plan"]
        start = WORLD.start(given)
        end = await run(start, *plan)
        accepted += end.reward == 1 and WORLD.score(given, given["gold"]) == {"solved": 1.0, "optimal": 1.0}
        assert len(solve(start) or []) == record["steps"]
        for cut in range(len(plan)):
            assert WORLD.score(given, "\n".join(plan[:cut]))["solved"] == 0
        for number in range(len(plan) - 1):
            swapped = [*plan[:number], plan[number + 1], plan[number], *plan[number + 2 :]]
            assert WORLD.score(given, "\n".join(swapped))["solved"] == 0
    assert accepted == expected("bench_rap_blocksworld")["gold_plan_ok"]


@pytest.mark.thorough
def test_recorded_plans_without_their_worlds(load: Load) -> None:
    for record in load("bench_blocksworld_v1"):
        given = read_task(record)
        lines = given["gold"].split("\n")
        assert WORLD.score(given, record["raw"][1])["solved"] == 0, "its blocks have letters, the task's have colours"
        assert WORLD.score(given, given["gold"]) == {"solved": 1.0, "optimal": 1.0}
        assert len(solve(WORLD.start(given)) or []) == record["steps"] == len(lines)
        assert not any(WORLD.score(given, "\n".join(lines[:cut]))["solved"] for cut in range(len(lines)))
        assert all(
            WORLD.score(given, "\n".join([*lines[:i], b, a]))["solved"] == 0 for i, (a, b) in enumerate(pairwise(lines))
        )


def test_a_plan_tells_of_a_part_of_its_world(load: Load) -> None:
    for record in load("bench_rap_blocksworld"):
        given = read_task(record)
        init, built = facts_of_plan(read_plan(given["gold"]) or [])
        assumed = {fact.split()[0] for fact in set(init) - set(given["data"]["init"])}
        assert assumed <= {"ontable"}
        known = check_facts(init)
        assert {fact for fact in given["data"]["goal"] if set(fact.split()[1:]) <= known} <= set(built) | set(init)
        described = task(built, init)
        assert len(solve(WORLD.start(described)) or []) == record["steps"]


def test_rows_of_another_kind_are_refused() -> None:
    for row in (
        {"id": "1"},
        {"id": "1", "raw": ["file", "(pick-up a)\n(pick-up a)", 2]},
        {"id": "1", "raw": ["f", "", 0]},
    ):
        with pytest.raises(Misuse):
            read_task(row)
