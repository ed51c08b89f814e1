"""Every strategy with a real language model, far too weak to be judged by its answers: what holds for any model."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tenacity import wait_none

from reflective_agents.graphs.chain_of_thought import graph as chain_of_thought
from reflective_agents.graphs.react import graph as react
from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import capabilities_of
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import close_models, get_model
from reflective_agents.models.structured import read_form, structured_request
from reflective_agents.state.context import Context
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.state.schemas import Judgement
from tests.strategies import Strategy, every_strategy

pytestmark = [pytest.mark.realmodel, pytest.mark.process, pytest.mark.wire, pytest.mark.thorough]
pytestmark += [pytest.mark.timeout(600)]

MODEL = "openai:smollm2"
LIMITS = {"max_model_calls": 12, "max_seconds": 240, "max_answer_tokens": 100, "call_timeout": 120}
ASK = {"messages": [("user", "What is 12 plus 7?")]}


@pytest.fixture(autouse=True)
async def provider(model_server: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setenv("OPENAI_BASE_URL", model_server)
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    yield
    await close_models()


@every_strategy
async def test_a_strategy_keeps_its_promises(strategy: Strategy) -> None:
    result = await strategy.graph.ainvoke(ASK, context=strategy.make(model=MODEL, **LIMITS))
    outcome, usage = result["outcome"], result["usage"]
    assert usage["model_calls"] <= LIMITS["max_model_calls"]
    assert outcome["reason"].strip()
    if outcome["status"] == "failed":
        assert result["answer"] is None
        return
    assert result["answer"].strip() == result["messages"][-1].text.strip()
    assert not result["messages"][-1].tool_calls
    for unwanted in ('{"name"', '"arguments"', "<tool_call>", "<think>"):
        assert unwanted not in result["answer"]


async def test_the_servers_schema_makes_structured_output_readable() -> None:
    chat = get_model(MODEL, max_answer_tokens=400)
    assert capabilities_of(chat).structured[0] == "json_schema"
    bound, prompt = structured_request(
        "json_schema", chat, Judgement, [HumanMessage("Judge this answer to 'What is 2 + 2?': 4.")]
    )
    reply = (await request(bound, prompt, Meter(Context(), NOTHING_SPENT)))[0]
    value, problem = read_form(reply, Judgement)
    assert value is not None or "cut off" in problem or "score" in problem


@pytest.mark.parametrize("acting", ["schema", "text", "paper"])
async def test_steps_are_readable_where_the_server_holds_the_model_to_them(
    acting: str, record_property: Callable[[str, object], None]
) -> None:
    steps: list[Any] = []
    for question in ("What is 12 plus 7?", "Ben has 3 boxes of 4 apples. How many apples has he?"):
        context: Any = {"model": MODEL, "environment": "arithmetic", "acting": acting, "max_actions": 3, **LIMITS}
        result = await react.ainvoke({"messages": [("user", question)]}, context=context)
        steps += result["steps"]
        assert result["usage"]["model_calls"] <= 4
    readable = [bool(taken["action"]) and not taken["action"].startswith("act(") for taken in steps]
    record_property(f"readable steps: {acting}", f"{sum(readable)} of {len(readable)}")
    if acting == "schema":
        assert sum(readable) >= 0.5 * len(readable), "the others were cut off"


async def test_votes_are_weighed_by_how_likely_each_sample_is() -> None:
    context: Any = {"model": MODEL, "samples": 3, "votes": "likelihood", "search": "none", "seed": 1, **LIMITS}
    result = await chain_of_thought.ainvoke(ASK, context=context)
    likelihoods = [drawn["likelihood"] for drawn in result["samples"]]
    assert len({drawn["text"] for drawn in result["samples"]}) > 1, "each has a seed of its own"
    assert len({*likelihoods}) > 1
    assert all(0 < likelihood < 1 for likelihood in likelihoods)


async def test_n_beyond_what_the_server_gives_leads_to_single_draws() -> None:
    chat, events = get_model(MODEL, max_answer_tokens=16), list[str]()
    meter = Meter(Context(), NOTHING_SPENT, lambda event, **_: events.append(event))
    replies = await request(chat, [HumanMessage("Say a word.")], meter, n=4)
    assert len(replies) == 4
    assert capabilities_of(chat).n is False
    assert "learned" in events
