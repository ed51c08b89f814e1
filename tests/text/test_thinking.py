"""Thoughts before answers: split off in every form, whole or while they come."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.text import thinking
from reflective_agents.text.thinking import ThoughtFilter, split_thought


def test_a_reply_is_split() -> None:
    for text, answer, thought in [
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
    ]:
        assert split_thought(text) == (answer, thought)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "\n", " ", "<", "`"])))
def test_nothing_is_said_that_was_not_written(parts: list[str]) -> None:
    answer, _ = split_thought("".join(parts))
    assert not answer or set(answer) <= set("".join(parts))


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


TAGS = ("think", "thinking", "thought", "reasoning", "THINK")
FORMS = (
    "<{0}>Hm.</{0}>\n\n# Paris\nit is", "\n <{0}>\nHm.\n</{0}>Paris", "<{0}>a</{0}> <{0}>b</{0}>\n Paris  is",
    "<{0}></{0}>Paris", "<{0}>never closed", "<{0}>Hm.</{0}>", "<{0}>see `</{0}>` there</{0}>Paris", "Paris <b>is</b>",
    "<b>Paris</b>", "<", " <{0}", "  Paris", "a <{0}>b</{0}",
)  # fmt: skip


def test_a_reply_is_the_same_wherever_it_is_cut() -> None:
    for tag in TAGS:
        for form in FORMS:
            text = form.format(tag)
            for first in range(len(text) + 1):
                for second in range(first, len(text) + 1):
                    filtered = ThoughtFilter()
                    shown = (
                        "".join(map(filtered.feed, (text[:first], text[first:second], text[second:]))) + filtered.end()
                    )
                    assert (shown, filtered.thought) == split_thought(text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thought>", "</reasoning>", "a", "\n", "<", "`"])), st.data())
def test_pieces_show_what_the_whole_shows(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    filtered, at_once = ThoughtFilter(), ThoughtFilter()
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    shown = "".join(map(filtered.feed, pieces)) + filtered.end()
    assert (shown, filtered.thought) == (at_once.feed(text) + at_once.end(), at_once.thought)


def test_a_long_thought_is_searched_once_however_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []

    class Counting:
        def search(self, text: str, *span: int) -> re.Match[str] | None:
            searched.append(len(text))
            return pattern.search(text, *span)

    pattern = thinking._CLOSE
    monkeypatch.setattr(thinking, "_CLOSE", Counting())
    filtered = ThoughtFilter()
    text = f"<think>{'a < b, ' * 500}</think>Paris"
    assert "".join(map(filtered.feed, text)) + filtered.end() == "Paris"
    assert sum(searched) < 20 * len(text)


@pytest.mark.parametrize(
    ("text", "shown"), [(" " * 5_000, " " * 5_000), (f"{' ' * 5_000}Paris", f"{' ' * 5_000}Paris")]
)
def test_blanks_before_an_answer_stay(text: str, shown: str) -> None:
    filtered = ThoughtFilter()
    assert "".join(map(filtered.feed, text)) + filtered.end() == shown
