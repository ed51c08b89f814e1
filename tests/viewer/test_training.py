"""Preference pairs and examples for fine-tuning."""

import json
from typing import Any

import pytest

from reflective_agents.viewer.picture import Picture, complete
from reflective_agents.viewer.training import examples, preferences
from tests.viewer.pictures import node, small

QUESTION = {"role": "user", "content": "Why?"}


def ai(text: str, **call: Any) -> dict[str, Any]:
    return {"type": "ai", "content": text, "tool_calls": [call] if call else []}


def revised(**changes: Any) -> Picture:
    """An action, an answer to it that was criticised, and three revisions; a second action without a score."""
    call = {"name": "search", "args": {"query": "é"}, "id": "c1"}
    nodes = [
        node("0", "root"),
        node(
            "0.0",
            messages=[ai("", **call), {"type": "tool", "content": "Found.", "tool_calls": [], "tool_call_id": "c1"}],
        ),
        node("0.0.0", "answer", messages=[ai("First.")], critique="Too short.", score=0.3),
        node("0.0.0.0", "answer", messages=[ai("Best.")], score=0.7, solved=True),
        node("0.0.0.1", "answer", messages=[ai("Good.")], score=0.6),
        node("0.0.0.2", "answer", messages=[ai("Bad.")], score=0.9, reward=0.0),
        node("0.1", messages=[ai("Idle.")]),
    ]
    picture: dict[str, Any] = {"question": "Why?", "nodes": {own["id"]: own for own in nodes}}
    return complete({**picture, "path": ["0", "0.0", "0.0.0", "0.0.0.0"], **changes})


SEARCHED = [
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "é"}'}}],
    },
    {"role": "tool", "content": "Found.", "tool_call_id": "c1"},
]


def says(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_siblings_by_reward_then_score() -> None:
    prompt = [QUESTION, *SEARCHED, says("First."), {"role": "user", "content": "Too short."}]
    assert preferences(revised()) == [
        {"prompt": prompt, "chosen": [says("Best.")], "rejected": [says("Good.")]},
        {"prompt": prompt, "chosen": [says("Best.")], "rejected": [says("Bad.")]},
    ]


@pytest.mark.parametrize(("margin", "rejected"), [(0.0, 2), (0.1, 2), (0.11, 1), (0.7, 1), (0.71, 0)])
def test_margin(margin: float, rejected: int) -> None:
    assert len(preferences(revised(), margin=margin)) == rejected


def test_equal_siblings_make_no_pair() -> None:
    nodes = {key: node(key, score=0.5, action=key) for key in ("0", "0.0", "0.1")}
    assert preferences(complete({"nodes": nodes}), margin=0.0) == []


def test_trajectories() -> None:
    best, *_ = pairs = preferences(revised(), "trajectories")
    assert best["prompt"] == [QUESTION]
    assert best["chosen"] == [*SEARCHED, says("Best.")]
    assert [pair["rejected"][-1]["content"] for pair in pairs] == ["First.", "Good.", "Bad."]


def test_example_is_the_way_to_the_answer() -> None:
    assert examples(revised()) == [{"messages": [QUESTION, *SEARCHED, says("Best.")]}]


@pytest.mark.parametrize(("least", "found"), [(None, 0), (0.6, 1), (0.61, 0)])
def test_example_must_be_solved_or_good_enough(least: float | None, found: int) -> None:
    assert len(examples(revised(path=["0", "0.0", "0.0.0", "0.0.0.1"]), least)) == found


def test_without_a_path_there_is_no_example() -> None:
    assert examples(revised(path=[]), 0.0) == []


def test_calls_without_ids_are_answered_in_their_order() -> None:
    call = {"name": "f", "args": {}}
    messages = [
        {"type": "ai", "content": "", "tool_calls": [call, call]},
        *({"type": "tool", "content": text, "tool_calls": []} for text in ("one", "two", "nobody asked")),
    ]
    nodes = {"0": node("0", "answer", messages=messages, solved=True)}
    (example,) = examples(complete({"nodes": nodes, "path": ["0"]}))
    _, question, *answered = example["messages"]
    assert [turn["tool_call_id"] for turn in answered] == [call["id"] for call in question["tool_calls"]]
    assert len({turn["tool_call_id"] for turn in answered}) == 2


def test_actions_without_messages_are_turns() -> None:
    nodes = {
        "0": node("0", "root"),
        "0.0": node("0.0", thought="Six is needed.", action="10 - 4 = 6", observation="left: 5 6 6"),
        "0.0.0": node("0.0.0", "answer", action="5 * 6 - 6 = 24", solved=True),
    }
    (example,) = examples(complete({"question": "4 5 6 10", "nodes": nodes, "path": list(nodes)}))
    assert [(turn["role"], turn["content"]) for turn in example["messages"]] == [
        ("user", "4 5 6 10"),
        ("assistant", "Six is needed.\n10 - 4 = 6"),
        ("user", "left: 5 6 6"),
        ("assistant", "5 * 6 - 6 = 24"),
    ]


def test_everything_is_plain_json() -> None:
    assert json.loads(json.dumps(preferences(small()) + examples(small())))
