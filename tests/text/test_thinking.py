"""Thoughts before answers: split off in every form, whole or while they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.text.thinking import ThoughtFilter, split_thought


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("<think>\nHm.\n</think>\n\nParis", "Paris", "Hm."),
        ("<THINKING>Hm.</THINKING>Paris", "Paris", "Hm."),
        ("<think>a</think><think>b</think>Paris", "Paris", "a\nb"),
        ("<think></think>Paris", "Paris", ""),
        ("Hm.\n</think>\nParis", "Paris", "Hm."),
        ("<think>Hm, and so on", "", "Hm, and so on"),
        ("Paris\n<think>\nOr Lyon?\n</think>", "Paris", "Or Lyon?"),
        ("Paris\n<think>\nOr Lyon?", "Paris", "Or Lyon?"),
        ("Paris", "Paris", ""),
        (" a < b ", " a < b ", ""),
        ("The tag `<think>` ends with `</think>`.", "The tag `<think>` ends with `</think>`.", ""),
    ],
)
def test_a_reply_is_split(text: str, said: str, thought: str) -> None:
    assert split_thought(text) == (said, thought)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "\n", " ", "<", "`"])))
def test_nothing_is_said_that_was_not_written(parts: list[str]) -> None:
    said, _ = split_thought("".join(parts))
    assert not said or set(said) <= set("".join(parts))


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<think>Hm.</think>Paris it is", "Paris it is"),
        ("\n<think>Hm.", ""),
        ("Paris it is", "Paris it is"),
        ("<b>Paris</b>", "<b>Paris</b>"),
    ],
)
def test_a_stream_shows_no_thought(text: str, shown: str, size: int) -> None:
    filtered = ThoughtFilter()
    pieces = [filtered.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*pieces, filtered.end()]) == shown
