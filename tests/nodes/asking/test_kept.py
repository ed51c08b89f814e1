"""Summaries of a process: found by what they cover, for one user, and by who would write them."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

from reflective_agents.nodes.asking.kept import LONGEST_KEPT, MOST_KEPT, beginnings, find_summary, keep_summary
from reflective_agents.state.context import Context
from reflective_agents.state.run import Compaction

TALK: list[AnyMessage] = [HumanMessage("Rex is my dog.", id="1"), AIMessage("I see.", id="2"), HumanMessage("So?")]


@pytest.fixture(autouse=True)
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")


def keys(talk: Sequence[BaseMessage], user: str | None = None, **settings: Any) -> list[str]:
    return beginnings(talk, Context(**{"model": "openai:test"} | settings), user)


def compaction(summary: str = "Rex is a dog.") -> Compaction:
    return Compaction(until="2", messages=2, summary=summary, sources={})


def test_a_summary_is_found_by_what_it_covers() -> None:
    keep_summary(keys(TALK), compaction())
    again = [
        HumanMessage("Rex is my dog.", id="a"),
        AIMessage("I see.", id="b"),
        HumanMessage("And?"),
        AIMessage("Yes."),
    ]
    assert find_summary(keys(again), again) == {**compaction(), "until": "b"}
    other = [HumanMessage("Rex is my cat."), *again[1:]]
    assert find_summary(keys(other), other) is None
    assert find_summary(keys(TALK[:1]), TALK[:1]) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"user": "bob"},
        {"model": "openai:other"},
        {"compact_model": "openai:other"},
        {"language": "German"},
        {"prompts": {"compaction.SHOWN": "{messages}: {summary}"}},
    ],
)
def test_nobody_is_shown_what_was_written_for_others(settings: dict[str, Any]) -> None:
    keep_summary(keys(TALK, "anna"), compaction())
    assert find_summary(keys(TALK, "anna"), TALK)
    assert find_summary(keys(TALK, **{"user": "anna"} | settings), TALK) is None


def test_a_model_without_an_address_has_none() -> None:
    assert keys(TALK, model="offline") == []


@pytest.mark.thorough
def test_what_is_kept_is_bounded() -> None:
    keep_summary(keys(TALK), compaction("x" * LONGEST_KEPT))
    assert find_summary(keys(TALK), TALK) is None
    keep_summary(keys(TALK), compaction())
    for number in range(MOST_KEPT):
        keep_summary(keys(TALK, f"{number}"), compaction())
    assert find_summary(keys(TALK), TALK) is None
    assert find_summary(keys(TALK, f"{MOST_KEPT - 1}"), TALK)
