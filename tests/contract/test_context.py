"""Small contexts: every strategy works at its defaults in 8,192 tokens, prompt and answer together."""

from typing import Any

import pytest

from reflective_agents.testing.awkward import AwkwardServer
from reflective_agents.testing.script import Request, Script
from tests.strategies import ASK, Result, Strategy, every_strategy

pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("provider")]
QUICK = ("n", "search", "parallel", "samples", "confidence_samples", "examples")
"""Settings by which the strategies' quick runs differ from their defaults."""
PARAGRAPH = "What a small model writes when it is asked for a paragraph of the usual length. " * 10
PARTS = ("critique", "reasoning", "answer", "missing", "superfluous")


def at_length(script: Script) -> Script:
    """A model that says the same in as many words as models use: 800 characters, 400 in each part of a form."""

    def reply(request: Request) -> Any:
        written = script(request)
        if isinstance(written, dict):
            return {name: f"{PARAGRAPH[:400]} {part}" if name in PARTS else part for name, part in written.items()}
        return f"{PARAGRAPH}\n{written}" if isinstance(written, str) and len(written) > 35 else written

    return reply


async def longest_run(strategy: Strategy, context: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, int]:
    """A run at the defaults that its own limit ends; and the requests refused as too long."""
    settings: dict[str, Any] = {name: value for name, value in strategy.settings.items() if name not in QUICK}
    settings |= {"search": "local"} if getattr(strategy.context(), "searches", False) else {}
    async with AwkwardServer(at_length(strategy.endless), "small_context", context=context) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        result = await strategy.graph.ainvoke(ASK, context=strategy.context(model="openai:test", **settings))
    return result, sum(exchange.fault == "400" for exchange in server.requests)


@pytest.mark.matrix(over="strategy")
@every_strategy
@pytest.mark.parametrize("context", [8_192, 4_096])
async def test_every_strategy_works_at_its_defaults(
    strategy: Strategy, context: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, refused = await longest_run(strategy, context, monkeypatch)
    assert result["answer"]
    assert "context" not in result["outcome"]["reason"]
    assert refused <= 1
