"""The figures that do not depend on the clock: calls and waves of every strategy, and how the bench reports them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from bench.rows import Row, kept, table
from bench.scripts import QUESTION, unsolvable
from bench.strategies import LATS
from graphs import lats, reflection, reflexion
from testing.fake import FakeChatModel, FakeChatModelWithoutN
from testing.script import Reply, Request

LATENCY = 0.03


async def cost(graph: Any, model: FakeChatModelWithoutN, **settings: Any) -> tuple[int, int]:
    """Calls and waves of a run on the question that nothing solves."""
    state = await graph.ainvoke(QUESTION, context={**settings, "model": model})
    assert state["outcome"]["status"] in ("limit_reached", "exhausted")
    assert state["usage"]["model_calls"] == len(model.calls)
    return len(model.calls), model.waves


@pytest.mark.parametrize(("grading", "calls"), [("each", 62), ("together", 22)])
async def test_lats_needs_22_waves(grading: str, calls: int) -> None:
    model = FakeChatModel(reply=unsolvable, latency=LATENCY)
    assert await cost(lats.graph, model, **{**LATS, "grading": grading}) == (calls, 22)


async def test_lats_needs_no_more_waves_where_a_request_brings_one_candidate() -> None:
    def script(request: Request) -> Reply:
        return unsolvable(replace(request, index=request.attempt))  # what tells the candidates apart here

    model = FakeChatModelWithoutN(reply=script, latency=LATENCY)
    calls, waves = await cost(lats.graph, model, **LATS)
    assert calls == 1 + 1 + 10 * (5 + 5)
    assert waves <= 22  # the first candidate may be judged while the last one is still being sampled
    assert model.max_in_flight >= 5


async def test_reflection_needs_two_calls_a_round() -> None:
    model = FakeChatModel(reply=unsolvable, latency=LATENCY)
    assert await cost(reflection.graph, model, max_rounds=3) == (6, 6)


async def test_reflexion_needs_one_call_a_round() -> None:
    model = FakeChatModel(reply=unsolvable, latency=LATENCY)
    assert await cost(reflexion.graph, model, search="local", max_rounds=3) == (4, 4)


def test_only_a_count_that_is_too_high_fails_the_bench() -> None:
    slow, growing = Row("clock", 1.2, "s", 1.05, timed=True, digits=2), Row("calls", 63, "", 62)
    fine = [Row("calls", 62, "", 62), Row("bare client", 3.0, "ms")]
    assert kept([*fine, slow])
    assert not kept([*fine, growing])
    assert growing.cells() == ("calls", "63", "≤ 62", "NO")
    assert slow.cells() == ("clock", "1.20 s", "≤ 1.05 s", "NO")
    assert json.loads(json.dumps(growing.plain()))["holds"] is False
    assert table([*fine, slow]).row_count == 3
