"""What every environment keeps to, and the example in the documentation."""

import json
import textwrap
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.environments import base
from reflective_agents.environments.arithmetic import Arithmetic
from reflective_agents.environments.base import Environment, State, Task, task_of
from reflective_agents.environments.blocksworld import Blocksworld
from reflective_agents.environments.crosswords import Crosswords
from reflective_agents.environments.fever import FactChecking
from reflective_agents.environments.game24 import Game24
from reflective_agents.environments.programming import Programming
from reflective_agents.environments.questions import Questions
from reflective_agents.environments.registry import ENVIRONMENTS, get_environment, resolve_environment
from reflective_agents.evals.datasets import Dataset
from reflective_agents.graphs import aggregation, chain_of_thought, lats, trials
from reflective_agents.nodes.acting.actions import take
from reflective_agents.state.errors import Misuse

SECRET = "zyxwv"
CONTEXT = [["Paris", ["Paris is a city.", " It lies on the Seine."]], ["Seine", ["The Seine is a river."]]]


def example() -> Environment:
    """Run the example of the documentation and return its environment."""
    code = base.__doc__ or ""
    names: dict[str, Any] = {}
    exec(textwrap.dedent(code[code.index("    from") :]), names)
    made: Environment = names["Guess"]()
    return made


CASES: list[tuple[Environment, Task, list[str]]] = [
    (example(), {"id": "g", "question": "", "gold": "987654321"}, ["5", "77"]),
    (
        Questions(),
        {"id": "q", "question": "Which river?", "gold": SECRET, "data": {"context": CONTEXT}},
        ["Search[Paris]", "Search[river]", "Lookup[Seine]", "Lookup[nothing]", "Finish[Rhine]", "Search[]"],
    ),
    (
        FactChecking(),
        {"id": "f", "question": "Paris is a river.", "gold": "REFUTES", "data": {"context": CONTEXT}},
        ["Search[Paris]", "Search[none]", "Lookup[Seine]", "Finish[SUPPORTS]"],
    ),
    (
        Game24(),
        {"id": "n", "question": "4 5 6 10", "gold": SECRET},
        [
            "4 + 5 = 9",
            "10 - 4 = 6 (left: 5 6 6)",
            "6 * 9 = 54",
            "10 + 54 = 64",
            "Answer: 4 + 5",
            "Answer: (",
            "5 / 0 = 1",
        ],
    ),
    (
        Crosswords(),
        {"id": "c", "question": "", "gold": "abcdefghijklmnopqrstuvwxy".upper(), "data": {"clues": ["clue"] * 10}},
        ["h1. water", "v1. wagon", "h2. arena", "h3. seven", "h4. green", "h3. ghost", "v5. h", "h5. nurse"],
    ),
    (
        Blocksworld(),
        {
            "id": "b",
            "question": "",
            "gold": SECRET,
            "data": {
                "init": ["on red blue", "ontable blue", "ontable white", "clear red", "clear white", "handempty"],
                "goal": ["on blue red"],
                "shortest": 4,
            },
        },
        [
            "unstack the red block from on top of the blue block",
            "put down the red block",
            "(stack red white)",
            "pick-up blue",
            "stack the blue block on top of the red block",
            "stack blue blue",
            "pick up the green block",
            "Plan:\npick up white\nstack white red",
            "Plan:\nput down red",
            "Plan:",
        ],
    ),
    (
        Arithmetic(),
        {"id": "a", "question": "Six boxes of 8 pens?", "gold": "987654321"},
        [
            "calculate: 6 * 8",
            "calculate: 1 / 0",
            "calculate: six",
            "Question: How many? Answer: 48",
            "Question: ?",
            "Answer: $1,000",
            "Answer: none",
        ],
    ),
    (
        Programming(),
        {"id": "p", "question": "Write f.", "data": {"entry_point": "f", "tests": [], "hidden": f"assert '{SECRET}'"}},
        ["def f(): pass", "```python\ndef f():\n    return 1\n```"],
    ),
]
IDS = [case[0].name for case in CASES]
HIDDEN = {"guess": "987654321", "arithmetic": "987654321", "fever": "REFUTES", "crosswords": "FGHIJ"}


def kept(state: State, task: Task) -> State:
    """Return a state as a search keeps it: as JSON, without its task, which is put back."""
    without = {name: value for name, value in state.items() if name != "task"}
    return {**json.loads(json.dumps(without)), "task": task}


@pytest.mark.matrix
@pytest.mark.parametrize("case", CASES, ids=IDS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
async def test_any_actions_keep_the_rules(case: tuple[Environment, Task, list[str]], data: st.DataObject) -> None:
    environment, task, likely = case
    hidden = HIDDEN.get(environment.name, SECRET)
    state = environment.start(task)
    for action in data.draw(st.lists(st.sampled_from(likely) | st.text(max_size=30), max_size=12)):
        if state["done"]:
            break
        before = json.dumps(state)
        after = await environment.step(state, action)
        again = await environment.step(kept(state, task), action)
        assert json.dumps(state) == before, "a state is never changed in place"
        assert again == after, "a state is complete, also after a round trip through JSON without its task"
        assert after.state["task"] == task
        assert environment.key(again.state) == environment.key(after.state)
        assert environment.public(again.state) == environment.public(after.state)
        assert environment.answer(again.state) == environment.answer(after.state)
        assert hidden not in after.observation
        assert hidden not in environment.public(after.state)
        assert after.reward is None or (0 <= after.reward <= 1 and after.done)
        assert after.state["done"] == after.done
        if not after.valid:
            assert after.state == state
            assert after.reward is None
            assert environment.actions not in after.observation, "nothing to copy"
        state = after.state
    assert (not state["done"]) or environment.answer(state) or environment.name == "game24"


@pytest.mark.matrix
@pytest.mark.parametrize("environment", [case[0] for case in CASES[:-1]], ids=IDS[:-1])  # blanks matter in programs
@given(action=st.text(max_size=60))
def test_the_canonical_form_takes_any_text_and_blanks_do_not_matter(environment: Environment, action: str) -> None:
    assert environment.canonical(f"  {action}\n") == environment.canonical(action)


@pytest.mark.thorough
@pytest.mark.sandbox
async def test_tests_of_its_own_are_kept_without_the_task() -> None:
    environment = Programming()
    task: Task = {"id": "p", "question": "Write f.", "data": {"entry_point": "f", "hidden": "assert f() == 2"}}
    state = {**environment.start(task), "tests": ["assert f() == 2", "assert f() > 1"]}
    first = await environment.step(kept(state, task), "def f(): return 3")
    assert (first.reward, first.done) == (0.5, False)
    second = await environment.step(kept(first.state, task), "def f(): return 2")
    assert (second.reward, second.done) == (1.0, True)
    assert environment.score(kept(second.state, task)["task"], environment.answer(second.state)) == {"passed": 1.0}


KEYS: list[tuple[str, list[str], list[str], bool]] = [
    ("game24", ["4 + 5 = 9", "10 - 6 = 4"], ["10 - 6 = 4", "4 + 5 = 9"], True),
    ("game24", ["4 + 5 = 9"], ["10 - 6 = 4"], False),
    ("game24", ["Answer: 4 + 5"], ["Answer: 5 + 4"], False),
    ("game24", ["Answer: 4 + 5"], ["answer: 4+5 = 9"], True),
    ("crosswords", ["h1. water", "v1. wagon"], ["v1. wagon", "h1. water"], True),
    ("crosswords", ["h1. water"], ["v1. wagon"], False),
    ("blocksworld", ["unstack red blue", "put down red", "pick up red"], ["unstack red blue", "put down red"], False),
    ("blocksworld", ["unstack red blue", "stack red blue"], [], True),
    ("blocksworld", ["Plan:\npick up white"], ["pick up white"], False),
    ("blocksworld", ["Plan:\npick up white"], ["plan:\n1. pick-up white"], True),
    ("arithmetic", ["calculate: 6*8", "calculate: 1+1"], ["calculate: 1+1", "calculate: 6*8"], True),
    ("arithmetic", ["calculate: 6*8"], ["calculate: 6*9"], False),
    ("arithmetic", ["Answer: 48"], ["calculate: 6*8", "Answer: $48.00"], True),
    ("arithmetic", ["Answer: 48"], ["Answer: 49"], False),
    ("programming", ["def f(): return 1"], ["def f(): return 2", "def f(): return 1   \n\n"], True),
    ("programming", ["def f(): return 1"], ["def f(): return 2"], False),
    ("guess", ["5"], ["77", "005"], True),
]


@pytest.mark.parametrize(("name", "first", "other", "equal"), KEYS)
async def test_states_that_are_worth_the_same_have_one_key(
    name: str, first: list[str], other: list[str], equal: bool
) -> None:
    environment, task, _ = CASES[IDS.index(name)]
    keys = []
    for actions in (first, other):
        state = environment.start(task)
        for action in actions:
            done = await environment.step(state, action)
            assert done.valid, done.observation
            state = done.state
        keys.append(environment.key(state))
    assert (keys[0] == keys[1]) is equal


def test_tests_are_a_part_of_the_key_of_a_program() -> None:
    environment, task = Programming(), CASES[IDS.index("programming")][1]
    state = {**environment.start(task), "answer": "def f(): pass"}
    assert environment.key(environment.start(task)) == ""
    assert environment.key(state) != environment.key({**state, "tests": ["assert f() is None"]})


@pytest.mark.parametrize("name", ["questions", "fever"])
async def test_what_was_read_counts_as_a_history(name: str) -> None:
    environment, task, actions = CASES[IDS.index(name)]
    state = environment.start(task)
    for action in actions:
        assert environment.key(state) == ""
        state = (await environment.step(state, action)).state


@pytest.mark.parametrize("case", CASES[1:4], ids=IDS[1:4])
async def test_nothing_goes_on_after_the_end(case: tuple[Environment, Task, list[str]]) -> None:
    environment, task, _ = case
    last = {"questions": "Finish[x]", "fever": "Finish[REFUTES]", "game24": "Answer: 4 * 5 + 10 - 6 = 24"}[
        environment.name
    ]
    end = await take(environment, environment.start(task), last)
    assert end.done
    after = await take(environment, end.state, last)
    assert "ended" in after.observation
    assert (after.state, after.reward, after.done, after.valid) == (end.state, None, True, False)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_says_what_it_is(name: str) -> None:
    environment = get_environment(name)
    assert environment.name == name
    assert environment.goal.endswith(".")
    assert {"question": "Why?", "id": "1"}["question"] in environment.request({"question": "Why?", "id": "1"})
    assert 2 <= len(environment.examples) <= 4
    assert {example.solved for example in environment.examples} == {True, False}


def test_a_task_that_lacks_a_question_takes_the_request() -> None:
    assert task_of({"gold": "4"}, "What is 2+2?") == {"id": "", "question": "What is 2+2?", "gold": "4"}
    assert task_of({"id": "a", "question": "Why?"}, "What is 2+2?") == {"id": "a", "question": "Why?"}


@pytest.mark.matrix(keep=8)
@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("graph", [chain_of_thought.graph, trials.graph, lats.graph, aggregation.graph])
async def test_a_task_without_a_question_is_the_request_or_refused(name: str, graph: Any) -> None:
    request = {"messages": [("user", "What is 2+2?")], "task": {"gold": "4"}}
    context = {"model": "offline", "environment": name, "max_model_calls": 1}
    with suppress(Misuse):
        out = await graph.ainvoke(request, context=context)
        assert out["outcome"]["status"] != "solved"


async def test_the_example_of_the_documentation() -> None:
    guess = example()
    task: Task = {"id": "1", "question": "", "gold": "7"}
    state = guess.start(task)
    low = await guess.step(state, "3")
    assert (low.observation, low.reward, low.done) == ("Higher.", None, False)
    hit = await guess.step(low.state, "007")
    assert (hit.observation, hit.reward, hit.done) == ("That is it.", 1.0, True)
    assert guess.score(task, guess.answer(hit.state)) == {"solved": 1.0}
    assert not (await guess.step(state, "seven")).valid


@pytest.mark.parametrize("name", [*ENVIRONMENTS, "plain"])
@pytest.mark.parametrize("task", [{}, {"gold": "24"}, {"id": "1"}, {"question": None}, {"question": 7, "id": "1"}])
def test_a_task_without_its_question_is_refused(name: str, task: Any) -> None:
    with pytest.raises(Misuse):
        resolve_environment(name).start(task)
    with pytest.raises(Misuse):
        Dataset("broken", name, [task])
