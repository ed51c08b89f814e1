"""Choosing among the answers of a tree by pairs."""

import re
from typing import Any

import pytest

from reflective_agents.graphs import ab_mcts, best_of_n
from reflective_agents.state.errors import Misuse
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

ASK: dict[str, Any] = {"messages": [("user", "How many?")]}
OPEN: dict[str, Any] = {"search": "none"}


def playing(request: Request) -> Reply:
    """Answer something else each time; of two answers the higher one is better, and the judge prefers the lowest."""
    answers = [int(number) for number in re.findall(r"Answer (\d+)", request.last)]
    if request.schema == "Comparison":
        first, second = answers
        return {"reasoning": "So.", "better": 1 if first > second else 2}
    if request.schema:
        return {"reasoning": "So.", "score": 0.6 - answers[-1] / 1000, "solved": False}
    return f"Answer {request.index + request.attempt * 10}"


async def test_best_of_n_chooses_what_wins_its_comparisons_and_asks_no_judge() -> None:
    model = FakeChatModel(reply=playing)
    out = await best_of_n.graph.ainvoke(ASK, context={"model": model, **OPEN, "n": 4, "choose": "pairs"})
    assert (out["answer"], out["outcome"]["status"]) == ("Answer 3", "answered")
    assert out["usage"]["model_calls"] == len(model.calls) == 1 + 2 * 6
    assert {call.schema for call in model.calls} == {None, "Comparison"}
    scores = {node["messages"][0].text: node["terms"]["pairs"] for node in out["tree"].values() if node["messages"]}
    assert sorted(scores, key=lambda answer: scores[answer]) == [f"Answer {number}" for number in range(4)]


@pytest.mark.parametrize("settings", [{"n": 1}, {"n": 3}], ids=["a single one", "the same"])
async def test_an_answer_without_a_rival_is_an_answer(settings: dict[str, Any]) -> None:
    model = FakeChatModel(reply=lambda _: "Answer 7")
    out = await best_of_n.graph.ainvoke(ASK, context={"model": model, **OPEN, **settings, "choose": "pairs"})
    assert (out["answer"], out["outcome"]["status"], len(model.calls)) == ("Answer 7", "answered", 1)


async def test_ab_mcts_compares_at_the_end_what_its_judge_has_scored() -> None:
    settings = {**OPEN, "max_expansions": 4, "seed": 1}
    model = FakeChatModel(reply=playing)
    usual = await ab_mcts.graph.ainvoke(ASK, context={"model": FakeChatModel(reply=playing), **settings})
    out = await ab_mcts.graph.ainvoke(ASK, context={"model": model, **settings, "choose": "pairs"})
    given = [int(node["messages"][0].text.split()[1]) for node in out["tree"].values() if node["messages"]]
    assert usual["answer"] == f"Answer {min(given)}"
    assert out["answer"] == f"Answer {max(given)}"
    assert out["outcome"]["status"] == usual["outcome"]["status"] == "limit_reached"


async def test_comparisons_stay_within_the_limits() -> None:
    model = FakeChatModel(reply=playing)
    context = {"model": model, **OPEN, "n": 4, "choose": "pairs", "max_model_calls": 6}
    out = await best_of_n.graph.ainvoke(ASK, context=context)
    assert out["answer"]
    assert out["usage"]["model_calls"] == len(model.calls) == 1 + 2 * 2


async def test_of_answers_that_verifiers_score_only_the_best_are_compared() -> None:
    def even(request: str, answer: str) -> float:
        return 0.5 * (int(answer.split()[1]) % 2 == 0)

    model = FakeChatModel(reply=playing)
    context = {"model": model, **OPEN, "n": 4, "choose": "pairs", "verifiers": [even]}
    out = await best_of_n.graph.ainvoke(ASK, context=context)
    assert (out["answer"], len(model.calls), out["outcome"]["status"]) == ("Answer 2", 1 + 2, "exhausted")


async def test_the_outcome_tells_the_score_that_the_verifiers_give() -> None:
    context = {"model": FakeChatModel(reply=playing), **OPEN, "n": 3, "choose": "pairs"}
    out = await best_of_n.graph.ainvoke(ASK, context={**context, "verifiers": [lambda request, answer: 0.25]})
    assert set(re.findall(r"a score of (\d\.\d+)", out["outcome"]["reason"])) == {"0.25"}


async def test_what_is_verified_is_not_compared() -> None:
    model = FakeChatModel(reply=playing)
    verifiers = [lambda request, answer: answer == "Answer 1"]
    context = {"model": model, **OPEN, "n": 4, "choose": "pairs", "verifiers": verifiers}
    out = await best_of_n.graph.ainvoke(ASK, context=context)
    assert (out["answer"], len(model.calls), out["outcome"]["verified_by"]) == ("Answer 1", 1, "verifiers")


async def test_equal_answers_are_one_and_the_most_frequent_wins_a_draw() -> None:
    def undecided(request: Request) -> Reply:
        return {"reasoning": "So.", "better": 1} if request.schema else f"Answer {[1, 2, 2][request.index]}"

    model = FakeChatModel(reply=undecided)
    out = await best_of_n.graph.ainvoke(ASK, context={"model": model, **OPEN, "n": 3, "choose": "pairs"})
    assert (out["answer"], len(model.calls)) == ("Answer 2", 1 + 2)


@pytest.mark.parametrize("settings", [{"comparisons": 3}, {"choose": "pairs", "grading": "together"}])
async def test_settings_without_effect_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(Misuse):
        await best_of_n.graph.ainvoke(ASK, context={"model": "offline", **settings})
