"""Every strategy against servers with bad manners: they all answer, or say which capability is missing."""

import re
from pathlib import Path

import langchain_openai  # noqa: F401 - or the first run would load it, within its time
import openai.resources.chat  # noqa: F401 - and this the first call
import pytest
from langchain_core.messages import AIMessage

from bench.awkward import MOST_CALLS, meet
from reflective_agents.testing.awkward import MANNERS, THOUGHT, Manner
from tests.strategies import STRATEGIES, Strategy, every_case

pytestmark = [pytest.mark.wire, pytest.mark.matrix(keep=2), pytest.mark.usefixtures("provider")]

PAGE = (Path(__file__).parents[2] / "docs" / "small-models.md").read_text()
LACKING: dict[str, str] = {
    "thinks_unclosed": "thinking",
    "reasons_only": "thinking",
    "cut_off": "max_answer_tokens|cut off|too long|attempts",
}
"""Manners with which nobody can work, and what the reason of a run that has failed names."""


ENDS = {
    (manner, strategy.name): status.strip()
    for manner, cells in re.findall(r"^\| `(\w+)` \|(.*)\|$", PAGE, re.MULTILINE)
    if cells.count("|") == len(STRATEGIES) - 1
    for strategy, status in zip(STRATEGIES, cells.split("|"), strict=True)
}
"""What the page says of each server and strategy."""


def test_the_page_shows_every_end() -> None:
    assert set(ENDS) == {(manner, strategy.name) for manner in MANNERS for strategy in STRATEGIES}


@every_case("manner", MANNERS, turns=3)
async def test_a_server_with_bad_manners(strategy: Strategy, manner: Manner, monkeypatch: pytest.MonkeyPatch) -> None:
    result, server = await meet(strategy, manner)
    outcome, usage = result["outcome"], result["usage"]
    assert outcome["status"] == ENDS[manner, strategy.name], "python -m bench.awkward makes the table anew"
    assert usage["model_calls"] == len(server.requests) <= MOST_CALLS
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
