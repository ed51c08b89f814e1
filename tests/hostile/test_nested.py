"""Strategies inside of strategies inside of strategies: one limit holds for all of them together."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from reflective_agents.graphs.team import graph
from reflective_agents.state.settings.team import TeamContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.strategies import ASK, lats, plan

pytestmark = pytest.mark.hostile

SEARCH = {"n": 3, "max_expansions": 50, "parallel": 4}
ROLES = [
    {"name": name, "instructions": "Work.", "strategy": "plan", "settings": {"worker": worker, "worker_settings": own}}
    for name, worker, own in (("ada", "lats", SEARCH), ("bob", "ab_mcts", {"max_expansions": 50, "parallel": 4}))
]
"""A team of planners, each of which lets trees be searched."""


def endless(request: Request) -> Reply | Sequence[Reply]:
    """Delegate, plan and search without ever being content."""
    if request.schema == "Delegation":
        best = max(map(int, re.findall(r'<candidate number="(\d+)"', request.last)), default=0)
        tasks = [{"to": name, "task": f"Try {best + 1}."} for name in ("ada", "bob")]
        return {"critique": "No.", "score": 0.1, "best": best, "done": False, "tasks": tasks}
    if request.schema == "Plan":
        return plan.STRATEGY.endless(request)
    return lats.STRATEGY.endless(request)


def run(**limits: Any) -> tuple[Any, FakeChatModel]:
    model = FakeChatModel(reply=endless, latency=1.0)
    context = TeamContext.model_validate(
        {"model": model, "search": "local", "roles": ROLES, "max_rounds": 100, **limits}
    )
    out, _ = virtually(graph.ainvoke(ASK, context=context))
    return out, model


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("limit", [1, 2, 5, 13, 120])
def test_calls(limit: int) -> None:
    out, model = run(max_model_calls=limit)
    assert out["usage"]["model_calls"] == len(model.calls) <= limit
    assert (out["outcome"]["limit"]["name"], out["outcome"]["limit"]["most"]) == ("max_model_calls", limit)
    assert out["outcome"]["status"] == ("limit_reached" if out["answer"] else "failed")


@pytest.mark.matrix
@pytest.mark.parametrize("limit", [1_000, 4_000, 64_000])
def test_tokens(limit: int) -> None:
    out, model = run(max_total_tokens=limit, max_answer_tokens=64)
    assert out["usage"]["total_tokens"] <= limit
    assert out["usage"]["input_tokens"] == sum(len(request.text) // 4 + 1 for request in model.calls)
    assert out["outcome"]["limit"]["name"] == "max_total_tokens"


@pytest.mark.matrix
@pytest.mark.usefixtures("virtual_seconds")
@pytest.mark.parametrize("limit", [2.5, 20.5])
def test_seconds(limit: float) -> None:
    out, _ = run(max_seconds=limit, max_model_calls=10_000)
    assert out["usage"]["seconds"] <= limit + 0.5
    assert (out["outcome"]["limit"]["name"], out["outcome"]["limit"]["most"]) == ("max_seconds", limit)
