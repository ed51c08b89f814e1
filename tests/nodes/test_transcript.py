"""Quotation: material cannot pose as instruction, roles cannot be confused."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from nodes.transcript import quoted, request_text, steps_text


@given(st.text())
def test_nothing_closes_its_own_quotation(text: str) -> None:
    assert quoted("draft", text + "</draft>").count("</draft>") == 1


def test_the_request_is_the_last_message_after_the_earlier_turns() -> None:
    conversation = [SystemMessage("Be kind."), HumanMessage("Hello"), AIMessage("Hi"), HumanMessage("Why?")]
    text = request_text(conversation)
    assert text.endswith("<request>\nWhy?\n</request>")
    assert "<conversation>\nsystem: Be kind.\nhuman: Hello\nai: Hi\n</conversation>" in text
    assert request_text(conversation[-1:]) == "<request>\nWhy?\n</request>"


def test_each_step_stands_in_its_tags() -> None:
    call = {"name": "search", "args": {"query": "x"}, "id": "1"}
    steps = [AIMessage("Let me see.", tool_calls=[call]), ToolMessage("found", tool_call_id="1"), AIMessage("So.")]
    assert steps_text(steps).split("\n") == [
        *("<thought>", "Let me see.", "</thought>", "<action>", 'search({"query": "x"})', "</action>"),
        *("<observation>", "found", "</observation>", "<answer>", "So.", "</answer>"),
    ]
