"""Every strategy against servers with bad manners: they all answer, or say which capability is missing."""

import re
from collections.abc import AsyncIterator

import langchain_openai  # noqa: F401 - or the first run would load it, within its time
import openai.resources.chat  # noqa: F401 - and this the first call
import pytest
from langchain_core.messages import AIMessage
from tenacity import wait_none

from reflective_agents.models.providers import close_models
from reflective_agents.testing.awkward import MANNERS, THOUGHT, AwkwardServer, Manner
from tests.strategies import ASK, Result, Strategy, every_strategy

pytestmark = [pytest.mark.wire, pytest.mark.matrix(keep=8)]

LACKING: dict[str, str] = {
    "thinks_unclosed": "thinking",
    "reasons_only": "thinking",
    "cut_off": "max_answer_tokens|cut off|too long|attempts",
}
"""Manners with which nobody can work, and what the reason of a run that has failed names."""


@pytest.fixture(autouse=True)
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    yield
    await close_models()


async def run(strategy: Strategy, manner: Manner, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, AwkwardServer]:
    async with AwkwardServer(strategy.solving, manner) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        result = await strategy.graph.ainvoke(ASK, context=strategy.make(model="openai:test", max_model_calls=60))
    return result, server


@pytest.mark.parametrize("manner", MANNERS)
@every_strategy
async def test_a_server_with_bad_manners(strategy: Strategy, manner: Manner, monkeypatch: pytest.MonkeyPatch) -> None:
    result, server = await run(strategy, manner, monkeypatch)
    outcome, usage = result["outcome"], result["usage"]
    assert usage["model_calls"] == len(server.requests) <= 60
    if outcome["status"] == "failed":
        assert manner in LACKING, outcome
        assert re.search(LACKING[manner], outcome["reason"]), outcome
        assert result["answer"] is None
        return
    final = result["messages"][-1]
    assert isinstance(final, AIMessage)
    assert result["answer"].strip() == final.text.strip() != ""
    assert not final.tool_calls
    for unwanted in ("SECRET", "<think", '{"name"', "Action:", THOUGHT):
        assert unwanted not in result["answer"]
    sent = [message.text for call in server.calls for message in call.messages]
    assert not [text for text in sent if "SECRET" in text]
    if manner.startswith(("thinks", "reasons")):
        assert usage["thinking_tokens"] > 0
