"""A budget for a whole evaluation: nothing is sent beyond it, what is finished stays, and more of it goes on."""

import asyncio
from pathlib import Path

import pytest

from reflective_agents.evals.budget import Budget
from reflective_agents.evals.results import read_run
from reflective_agents.evals.run import evaluate
from reflective_agents.graphs import chain_of_thought
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.fake import FakeChatModel
from tests.evals.fakes import dataset, make_result


def context(model: FakeChatModel) -> ChainOfThoughtContext:
    return ChainOfThoughtContext(model=model, samples=1, max_answer_tokens=100)


async def test_evaluation_stops_at_its_budget_and_goes_on_with_more(tmp_path: Path) -> None:
    model = FakeChatModel(reply=lambda request: "1")
    tasks = dataset(20)
    await evaluate(chain_of_thought.graph, dataset(1), context=context(model), out=tmp_path / "one")
    one = read_run(tmp_path / "one")[1]["1"]["usage"]
    assert one is not None
    most = 8 * one["total_tokens"]
    budget = Budget(tokens=most)
    out = tmp_path / "run"
    summary = await evaluate(chain_of_thought.graph, tasks, context=context(model), out=out, budget=budget)
    assert 0 < summary["finished"] < 20
    assert summary["cost"]["total_tokens"]["total"] <= most
    assert budget.reached is not None
    assert budget.reached["name"] == "budget_tokens"
    assert {result["outcome"]["status"] for result in read_run(out)[1].values() if result["outcome"]} == {"answered"}
    asked = len(model.calls)
    await evaluate(chain_of_thought.graph, tasks, context=context(model), out=out, budget=Budget(tokens=most))
    assert len(model.calls) == asked
    whole = await evaluate(chain_of_thought.graph, tasks, context=context(model), out=out, budget=Budget(tokens=10**6))
    assert (whole["finished"], len(model.calls)) == (20, 1 + 20)


async def test_calls_in_flight_are_waited_for_before_one_is_refused() -> None:
    budget = Budget(cost=1e-6)  # 1,000 nano-dollars
    first = await budget.hold(10, 600)
    waiting = asyncio.create_task(budget.hold(10, 600))
    await asyncio.sleep(0)
    assert not waiting.done()
    await first(1, 10, 300)
    second = await waiting
    await second(1, 10, 600)
    with budget.task() as cut, pytest.raises(LimitReached, match="max_total_cost"):
        await budget.hold(10, 600)
    assert cut.short


def test_what_was_spent_elsewhere_counts() -> None:
    budget = Budget(tokens=50)
    for calls in (2, 2):
        assert budget.reached is None
        budget.add(make_result("x", calls=calls))
    budget.add(make_result("y", calls=1))
    assert budget.reached
    assert (budget.reached["name"], budget.reached["most"]) == ("budget_tokens", 50)
