"""What every environment keeps to, and the example in the documentation."""

import json
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import environments.base
from environments.base import Environment, Task
from environments.crosswords import Crosswords
from environments.fever import FactChecking
from environments.game24 import Game24
from environments.questions import Questions

SECRET = "zyxwv"
CONTEXT = [["Paris", ["Paris is a city.", " It lies on the Seine."]], ["Seine", ["The Seine is a river."]]]


def example() -> Environment:
    """Run the example of the documentation and return its environment."""
    code = environments.base.__doc__ or ""
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
]
IDS = [case[0].name for case in CASES]
HIDDEN = {"guess": "987654321", "fever": "REFUTES", "crosswords": "FGHIJ"}


@pytest.mark.parametrize("case", CASES, ids=IDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
async def test_any_actions_keep_the_rules(case: tuple[Environment, Task, list[str]], data: st.DataObject) -> None:
    environment, task, likely = case
    hidden = HIDDEN.get(environment.name, SECRET)
    state = environment.start(task)
    for action in data.draw(st.lists(st.sampled_from(likely) | st.text(max_size=30), max_size=12)):
        before = json.dumps(state)
        was_done = state["done"]
        after = await environment.step(state, action)
        again = await environment.step(json.loads(before), action)
        assert json.dumps(state) == before, "a state is never changed in place"
        assert again == after, "a state is complete, also after a round trip through JSON"
        assert hidden not in after.observation.removesuffix(f"Legal actions: {environment.actions}.")
        assert hidden not in environment.public(after.state)
        assert after.reward is None or (0 <= after.reward <= 1 and after.done)
        assert after.state["done"] == after.done
        if not after.valid:
            assert after.state == state
            assert after.reward is None
            assert was_done or environment.actions in after.observation
        state = after.state
    assert (not state["done"]) or environment.answer(state) or environment.name == "game24"


@pytest.mark.parametrize("environment", [case[0] for case in CASES], ids=IDS)
@given(action=st.text(max_size=60))
def test_the_canonical_form_takes_any_text_and_blanks_do_not_matter(environment: Environment, action: str) -> None:
    assert environment.same(f"  {action}\n") == environment.same(action)


@pytest.mark.parametrize("case", CASES[1:4], ids=IDS[1:4])
async def test_nothing_goes_on_after_the_end(case: tuple[Environment, Task, list[str]]) -> None:
    environment, task, _ = case
    last = {"hotpotqa": "Finish[x]", "fever": "Finish[REFUTES]", "game24": "Answer: 4 * 5 + 10 - 6 = 24"}[
        environment.name
    ]
    end = await environment.step(environment.start(task), last)
    assert end.done
    after = await environment.step(end.state, last)
    assert "ended" in after.observation
    assert (after.state, after.reward, after.done, after.valid) == (end.state, None, True, False)


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
