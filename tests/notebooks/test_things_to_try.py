"""What the notebooks propose to try does what they say."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import pytest

from tests.notebooks.things import FOLDER, play

pytestmark = [pytest.mark.notebook, pytest.mark.thorough]
CALL = 'context={"model": thinker, "samples": 5}'


@pytest.fixture(autouse=True)
def beside_the_notebooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Their pictures and tables are imported from their folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delenv("MODEL", raising=False)
    with mpl.rc_context():
        mpl.use("Agg")
        yield


def depth(result: dict[str, Any]) -> int:
    return max(int(node["depth"]) for node in result["tree"].values())


async def test_lats_without_exploration_digs_deeper_at_more_calls() -> None:
    usual = (await play("lats", "steps-stream"))["result"]
    runs = {}
    for weight in (0, 3):
        change = ('"min_score": 0.95', f'"min_score": 0.95, "exploration_weight": {weight}')
        runs[weight] = (await play("lats", "steps-stream", steps_stream=change))["result"]
    assert depth(runs[0]) > depth(usual)
    assert runs[0]["usage"]["model_calls"] > usual["usage"]["model_calls"]
    assert runs[3]["tree"].keys() == usual["tree"].keys()


async def test_lats_grades_each_candidate_in_a_call_of_its_own() -> None:
    usual = (await play("lats", "steps-stream"))["result"]
    change = ('"min_score": 0.95', '"min_score": 0.95, "grading": "each"')
    each = (await play("lats", "steps-stream", steps_stream=change))["result"]
    per_node = [run["usage"]["model_calls"] / len(run["tree"]) for run in (usual, each)]
    assert per_node[1] > 1.5 * per_node[0]


async def test_lats_without_lessons_repeats_its_mistake() -> None:
    change = ('"gold_reward": True', '"gold_reward": True, "max_lessons": 0')
    paper = (await play("lats", "paper-model", paper_model=change))["paper"]
    assert (paper["answer"], paper["lessons"], paper["outcome"]["status"]) == ("London", [], "exhausted")


async def test_wallace_without_lessons_tries_the_same_again() -> None:
    change = ("context=context", 'context={**context, "reflection": "none"}')
    trials = (await play("wallace_and_gromit", "again", again=change))["result"]["trials"]
    assert {(trial["answer"], trial["reward"]) for trial in trials} == {("Twickenham", 0)}


async def test_wallace_without_the_right_answer_is_just_answered() -> None:
    out = (await play("wallace_and_gromit", "once", task=('    "gold": "Preston",\n', "")))["out"]
    assert (out["answer"], out["reward"], out["outcome"]["status"]) == ("Twickenham", None, "answered")


async def test_gear_reducers_with_a_wrong_last_line_are_not_solved() -> None:
    out = (await play("gear_reducers", "agent", script=("cost 9336 yuan", "cost 9999 yuan")))["result"]
    assert out["answer"].startswith("The gear reducers cost 9999")
    assert out["outcome"]["status"] == "answered"


async def test_gear_reducers_of_three_who_forget_the_days_outvote_the_rest() -> None:
    right = '"48 a day, times 7, is 336; and 9000.\\nAnswer: 9,336 yuan"'
    wrong = '"9000 + 48.\\nAnswer: 9048", "Answer: 9048"'
    out = (await play("gear_reducers", "vote", vote_script=(right, wrong)))["out"]
    assert (out["answer"], out["outcome"]["status"]) == ("9048", "answered")


async def test_gear_reducers_in_an_environment_are_verified() -> None:
    change = (
        f"QUESTION, {CALL}",
        f'{{**QUESTION, "task": {{"gold": "9336"}}}}, {CALL[:-1]}, "environment": "arithmetic"}}',
    )
    out = (await play("gear_reducers", "vote", vote=change))["out"]
    assert (out["answer"], out["outcome"]["status"]) == ("9336", "solved")
    assert out["outcome"]["verified_by"] == "environment"


async def test_reflection_of_fewer_rounds_returns_a_worse_draft() -> None:
    change = ("graph.astream(request, ", 'graph.astream(request, context={"max_rounds": 1}, ')
    usual = (await play("reflection", "steps-stream"))["result"]
    once = (await play("reflection", "steps-stream", steps_stream=change))["result"]
    best = [max(draft["score"] for draft in result["drafts"]) for result in (usual, once)]
    assert best[0] > best[1]
    assert once["outcome"]["limit"]["name"] == "max_rounds"


async def test_reflexion_that_may_revise_once_leaves_parts_out() -> None:
    change = ("graph.astream(request, ", 'graph.astream(request, context={"max_rounds": 1}, ')
    usual = (await play("reflexion", "steps-stream"))["result"]
    once = (await play("reflexion", "steps-stream", steps_stream=change))["result"]
    assert (usual["outcome"]["status"], once["outcome"]["status"]) == ("solved", "limit_reached")
    assert "Not covered" in once["outcome"]["reason"]
