"""Auto with choose="pairs": comparisons decide where nothing is verified and the vote is not safe."""

import re
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError

from reflective_agents.graphs.auto import graph
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request

ASK: dict[str, Any] = {"messages": [("user", "How many?")]}
SETTINGS: dict[str, Any] = {"search": "none", "choose": "pairs", "call_cost": 0.3}


def wavering(request: Request) -> Reply:
    """Never answer the same twice; of two answers the higher one is better."""
    if request.schema == "Comparison":
        first, second = map(int, re.findall(r"<answer>\n(\d+)", request.last))
        return {"reasoning": "So.", "better": 1 if first > second else 2}
    return respond(request) if request.schema else f"So.\nAnswer: {[4, 9, 2][request.index % 3]}"


async def test_comparisons_choose_among_samples_that_do_not_agree() -> None:
    model = FakeChatModel(reply=wavering)
    out = await graph.ainvoke(ASK, context={"model": model, **SETTINGS})
    assert (out["answer"], out["outcome"]["status"]) == ("9", "answered")
    assert sum(call.schema == "Comparison" for call in model.calls) == 2 * 3
    usual = await graph.ainvoke(ASK, context={"model": model, "search": "none", "call_cost": 0.3})
    assert usual["answer"] == "4"


async def test_samples_that_agree_are_not_compared() -> None:
    model = FakeChatModel(reply=lambda request: respond(request) if request.schema else "So.\nAnswer: 7")
    out = await graph.ainvoke(ASK, context={"model": model, **SETTINGS})
    assert (out["answer"], len(model.calls)) == ("7", 1)


async def test_a_safe_vote_is_not_compared_with_who_stays_behind() -> None:
    def reply(request: Request) -> Reply:
        return wavering(request) if request.schema else f"So.\nAnswer: {9 if request.index == 7 else 7}"

    model = FakeChatModel(reply=reply)
    out = await graph.ainvoke(ASK, context={"model": model, **SETTINGS, "samples": 8})
    assert (out["answer"], len(model.calls)) == ("7", 1)


async def test_of_answers_that_draw_the_most_frequent_is_taken() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "Comparison":
            return {"reasoning": "So.", "better": 1}
        return respond(request) if request.schema else f"So.\nAnswer: {[4, 9, 9, 2][request.index % 4]}"

    out = await graph.ainvoke(ASK, context={"model": FakeChatModel(reply=reply), **SETTINGS, "samples": 4})
    assert out["answer"] == "9"


async def test_where_the_judge_fails_the_votes_decide() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "Comparison":
            return ModelAuthenticationError("no such key")
        return respond(request) if request.schema else f"So.\nAnswer: {[4, 9, 9, 2][request.index % 4]}"

    out = await graph.ainvoke(ASK, context={"model": FakeChatModel(reply=reply), **SETTINGS, "samples": 4})
    assert (out["answer"], out["outcome"]["status"]) == ("9", "answered")


async def test_calls_that_are_kept_are_told_as_the_limit() -> None:
    def reply(request: Request) -> Reply:
        return wavering(request) if request.schema else f"So.\nAnswer: {request.index + 3 * request.attempt}"

    settings = {**SETTINGS, "call_cost": 0, "max_model_calls": 8}
    out = await graph.ainvoke(ASK, context={"model": FakeChatModelWithoutN(reply=reply), **settings})
    assert out["outcome"]["limit"] == {"name": "max_model_calls", "most": 8, "spent": 6, "needed": 3}


async def test_no_calls_are_kept_where_something_scores_answers() -> None:
    model = FakeChatModelWithoutN(reply=wavering)
    settings = {**SETTINGS, "call_cost": 0, "max_model_calls": 12, "verifiers": [lambda request, answer: 0.5]}
    out = await graph.ainvoke(ASK, context={"model": model, **settings})
    assert out["usage"]["model_calls"] == len(model.calls) == 12


async def test_a_score_decides_before_any_comparison() -> None:
    model = FakeChatModel(reply=wavering)
    context = {"model": model, **SETTINGS, "verifiers": [lambda request, answer: 0.5 * (answer == "2")]}
    out = await graph.ainvoke(ASK, context=context)
    assert out["answer"] == "2"
    assert not any(call.schema == "Comparison" for call in model.calls)


@pytest.mark.thorough
async def test_calls_are_kept_for_comparisons_and_limits_hold() -> None:
    for most in range(1, 14):
        model = FakeChatModel(reply=wavering)
        out = await graph.ainvoke(ASK, context={"model": model, **SETTINGS, "call_cost": 0, "max_model_calls": most})
        assert out["answer"]
        assert out["usage"]["model_calls"] == len(model.calls) <= most
