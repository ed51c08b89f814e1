"""What calls cost: by the table of the settings, by what the provider says, else by the list."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from reflective_agents.graphs import graph_of
from reflective_agents.models.bills import Reservation
from reflective_agents.models.costs import settle
from reflective_agents.models.prices import rates_by_name, rates_of
from reflective_agents.models.providers import get_model
from reflective_agents.state import policy
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, OperatorOnly, UnknownPrice
from reflective_agents.state.prices import table_of
from reflective_agents.testing import completions
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Request

graph: Any = graph_of("reflection")
plan: Any = graph_of("plan")
ASK: Any = {"messages": [("user", "Why?")]}
ONE = {"max_rounds": 1, "critic": "checks"}
TABLE = {"test": {"input": 2.0, "output": 8.0}}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda request: "Because.").threaded() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        yield running


def test_list_prices_are_known_by_the_provider_and_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = rates_of(get_model("openai:gpt-4.1-mini"), {})
    assert listed
    assert 0 < listed.cached < listed.input < listed.output
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert rates_of(get_model("openai:gpt-4.1-mini"), {}) is None


def test_prices_in_steps_follow_the_length_of_the_prompt() -> None:
    """A million tokens of Gemini 2.5 Pro cost $1.25 and $10; $2.50 and $15 if the prompt has more than 200,000."""
    short, long = (rates_by_name("gemini-2.5-pro", "google", "", {}, tokens) for tokens in (110_000, 220_000))
    assert short
    assert long
    assert short.cost(110_000, 1_000) == 147_500_000
    assert long.cost(220_000, 1_000) == 565_000_000


def test_what_is_written_into_a_cache_may_cost_more() -> None:
    rates = rates_by_name("claude-sonnet-4-5", "anthropic", "", {})
    assert rates
    assert rates.cost(1_000, 0, 400, 500) == 400 * 300 + 500 * 3_750 + 100 * 3_000


def test_a_call_costs_the_price_of_the_prompt_that_was_reported() -> None:
    prices = partial(rates_by_name, "gemini-2.5-pro", "google", "", {})
    usage = UsageMetadata(input_tokens=110_000, output_tokens=1_000, total_tokens=111_000)
    held = Reservation(222_000, 0)
    settle(held, [AIMessage("text", usage_metadata=usage)], 220_000, prices)
    assert held.paid == 147_500_000


@pytest.mark.parametrize("model", ["offline", "ollama:llama3.2"])
def test_what_runs_on_this_machine_costs_nothing(model: str) -> None:
    rates = rates_of(get_model(model), {})
    assert rates is not None
    assert rates.cost(1_000, 1_000) == 0


@pytest.mark.parametrize("name", ["gpt-4.1-mini", "openai:gpt-4.1-mini", "openai:*", "gpt*"])
def test_a_table_of_ones_own_goes_before_the_list(name: str) -> None:
    own = rates_of(get_model("openai:gpt-4.1-mini"), {name: {"input": 3.0, "output": 9.0, "cached_input": 1.0}})
    assert own
    assert own.cost(1_000, 100, cached_tokens=500) == 500 * 3_000 + 500 * 1_000 + 100 * 9_000


@pytest.mark.parametrize("how", ["data", "text", "file", "environment"])
def test_a_table_comes_in_many_ways(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"test": {"input": 2, "output": 8}}'
    (tmp_path / "prices.json").write_text(text)
    given: dict[str, Any] = {"data": TABLE, "text": text, "file": str(tmp_path / "prices.json"), "environment": None}
    if how == "environment":
        monkeypatch.setenv("REFLECT_PRICES", str(tmp_path / "prices.json"))
    assert table_of(Context.model_validate({"prices": given[how]} if given[how] else {}).prices) == TABLE


async def test_a_file_that_is_not_there_is_misuse_when_a_run_begins() -> None:
    with pytest.raises(Misuse, match=r"the prices of nowhere\.json cannot be read"):
        await graph.ainvoke(ASK, context={"model": "offline", "prices": "nowhere.json"})


@pytest.mark.parametrize("table", ["{", {"test": {"input": 1}}, {"test": {"input": -1, "output": 1}}])
def test_a_broken_table_is_refused(table: object) -> None:
    with pytest.raises(ValueError, match="prices"):
        Context.model_validate({"prices": table})


@pytest.mark.wire
async def test_a_run_costs_what_its_tokens_cost(server: OpenAIServer) -> None:
    result = await graph.ainvoke(ASK, context={"model": "openai:test", "prices": TABLE, **ONE})
    used = result["usage"]
    assert used["cost"] == pytest.approx((2 * used["input_tokens"] + 8 * used["output_tokens"]) / 1_000_000)
    assert used["cost"] > 0 == used["unpriced_calls"]


@pytest.mark.wire
async def test_without_a_price_calls_are_counted_as_such(server: OpenAIServer) -> None:
    result = await graph.ainvoke(ASK, context={"model": "openai:test", **ONE})
    assert (result["usage"]["cost"], result["usage"]["unpriced_calls"]) == (0, 1)


@pytest.mark.wire
@pytest.mark.parametrize("setting", ["model", "critic_model"])
async def test_a_limit_of_money_needs_prices_before_any_call(server: OpenAIServer, setting: str) -> None:
    context = {"model": "offline", setting: "openai:test", "max_cost": 1}
    with pytest.raises(UnknownPrice, match=r'give prices=\{"test": \{"input": '):
        await graph.ainvoke(ASK, context=context)
    assert not server.requests


def planner(request: Request) -> Any:
    if request.schema == "Plan":
        return {"subgoals": [{"id": f"{n}", "goal": f"Find {n}", "needs": []} for n in range(5)]}
    return "Answer: found"


async def test_workers_share_the_money_and_enough_is_kept_for_the_answer() -> None:
    model = FakeChatModel(reply=planner)
    settings = {"model": model, "search": "none", "worker": "chain_of_thought", "max_answer_tokens": 64}
    prices = {"Fake*": {"input": 1.0, "output": 4.0}}
    result = await plan.ainvoke(ASK, context={**settings, "prices": prices, "max_cost": 0.006})
    assert result["usage"]["cost"] <= 0.006
    assert result["outcome"]["status"] != "failed"
    assert model.calls[-1].text.count("<subgoal") >= 1


@pytest.mark.wire
@pytest.mark.parametrize("listens", [False, True])
async def test_what_the_provider_says_goes_before_the_table(
    server: OpenAIServer, listens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = completions.usage_of
    monkeypatch.setattr(completions, "usage_of", lambda *given: {**plain(*given), "cost": 0.0123})
    context: Any = {"model": "openai:test", "prices": TABLE, **ONE}
    modes: Any = ["values", *(["messages"] if listens else [])]
    parts = [part async for mode, part in graph.astream(ASK, context=context, stream_mode=modes) if mode == "values"]
    assert parts[-1]["usage"]["cost"] == 0.0123


async def test_on_a_server_prices_are_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "_check", None)
    policy.serve_others()
    with pytest.raises(OperatorOnly, match="prices"):
        await graph.ainvoke(ASK, context={"model": "offline", "prices": TABLE})
