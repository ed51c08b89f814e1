"""Auto with choose="pairs": comparisons decide where nothing is verified and the vote is not safe."""

import re
from typing import Any

from reflective_agents.graphs.auto import graph
from reflective_agents.testing.fake import FakeChatModel
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


async def test_a_score_decides_before_any_comparison() -> None:
    model = FakeChatModel(reply=wavering)
    context = {"model": model, **SETTINGS, "verifiers": [lambda request, answer: 0.5 * (answer == "2")]}
    out = await graph.ainvoke(ASK, context=context)
    assert out["answer"] == "2"
    assert not any(call.schema == "Comparison" for call in model.calls)


async def test_calls_are_kept_for_comparisons_and_limits_hold() -> None:
    for most in range(1, 14):
        model = FakeChatModel(reply=wavering)
        out = await graph.ainvoke(ASK, context={"model": model, **SETTINGS, "call_cost": 0, "max_model_calls": most})
        assert out["answer"]
        assert out["usage"]["model_calls"] == len(model.calls) <= most
