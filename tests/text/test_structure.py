"""Objects and tool calls inside what models write."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.text.clean import clean_data
from reflective_agents.text.structure import objects, read_calls, read_object

WANTED = {"critique": "It's fine, really.", "score": 0.5}


def test_one_object_in_many_forms() -> None:
    for text in [
        '{"critique": "It\'s fine, really.", "score": 0.5}',
        '```json\n{"critique": "It\'s fine, really.", "score": 0.5}\n```',
        '```\n{"critique": "It\'s fine, really.", "score": 0.5}',
        'Sure! Here it is:\n{"critique": "It\'s fine, really.", "score": 0.5}\nAnything else?',
        'I use { and }, like {this}. {"critique": "It\'s fine, really.", "score": 0.5}',
        '{"Critique": {"critique": "It\'s fine, really.", "score": 0.5}}',
        '{"name": "Critique", "arguments": {"critique": "It\'s fine, really.", "score": 0.5}}',
        '{"name": "Critique", "parameters": "{\\"critique\\": \\"It\'s fine, really.\\", \\"score\\": 0.5}"}',
        '{"type": "function", "function": {"name": "Critique", "arguments": {"critique": "It\'s fine, really.", '
        '"score": 0.5}}}',
        '<tool_call>{"name": "Critique", "arguments": {"critique": "It\'s fine, really.", "score": 0.5}}</tool_call>',
        '{"critique": "It\'s fine, really.", "score": 0.5,}',
        "{'critique': 'It's fine, really.', 'score': 0.5}",
        '{critique: "It\'s fine, really.", score: 0.5}',
        "{“critique”: “It's fine, really.”, “score”: 0.5}",
        '[{"critique": "It\'s fine, really.", "score": 0.5}]',
    ]:
        found = read_object(text, ["critique", "score"], "Critique")
        assert found == WANTED


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"critique": "He said "no" to it."}', 'He said "no" to it.'),
        ('{"critique": "two\nlines"}', "two\nlines"),
        ('{"critique": "caf\\u00e9"}', "café"),
        ('{"critique": "\\ud800"}', "�"),
        ('{"critique": null}', None),
        ("{'critique': True}", True),
        ('{"critique": high}', "high"),
        ('{"critique": [1, 2, ]}', [1, 2]),
        ('{"critique": {}}', {}),
    ],
)
def test_values(text: str, value: object) -> None:
    assert read_object(text, ["critique"]) == {"critique": value}


def test_what_holds_no_such_object() -> None:
    for text in [
        "It is fine.",
        "",
        '{"critique": "It is',
        '{"Critique": {"score": 1}',
        '{"other": 1}',
        '{"type": "function", "function": {"name": "Critique", "description": "Say", "parameters": {"properties": '
        '{"critique": {"type": "string"}}}}}',
        "[" * 100_000,
        '{"a":' * 10_000,
    ]:
        assert read_object(text, ["critique"], "Critique") is None


def test_a_list_stands_for_the_only_field() -> None:
    assert read_object('[{"a": 1}, {"a": 2}]', ["judgements"]) == {"judgements": [{"a": 1}, {"a": 2}]}
    assert read_object('[{"a": 1}]', ["one", "two"]) is None


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"name": "search", "arguments": {"query": "x"}}', [("search", {"query": "x"})]),
        ('```json\n{"name": "search", "arguments": {"query": "x"}}\n```', [("search", {"query": "x"})]),
        ('{"action": "search", "action_input": {"query": "x"}}', [("search", {"query": "x"})]),
        ('{"action": "search", "action_input": "x"}', [("search", {"input": "x"})]),
        (
            '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>' * 2,
            [("search", {"query": "x"})] * 2,
        ),
        ('[{"name": "search", "arguments": {"query": "x"}}]', [("search", {"query": "x"})]),
        ('I call it: {"name": "search", "arguments": {"query": "x"}}', [("search", {"query": "x"})]),
        ('{"name": "fly", "arguments": {"to": "x"}}', [("fly", {"to": "x"})]),
        ('An example of JSON: {"name": "fly", "arguments": {"to": "x"}}', []),
        ('{"name": "Ada", "born": 1815}', []),
        ('{"name": "search", "description": "Searches.", "parameters": {"query": "string"}}', []),
        ("search[x]", []),
    ],
)
def test_tool_calls_as_text(text: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert read_calls(text, ["search"]) == calls


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.just("critique"), JSON, min_size=1), st.sampled_from(["", "Well: ", "```json\n"]))
def test_what_is_json_by_the_letter_is_read_by_the_letter(value: dict[str, Any], before: str) -> None:
    assert read_object(before + json.dumps(value), ["critique"]) == clean_data(value)


@given(st.text(alphabet="{}[]\"'\\,:a1 \n/*`“”"))
def test_no_text_raises(text: str) -> None:
    list(objects(text))
    read_calls(text, ["a"])
    read_object(text, ["a"], "a")
