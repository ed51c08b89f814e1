"""Words in any language: how texts are cut, compared and counted."""

import pytest

from reflective_agents.text.words import content_words, count_words, spaced, words


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Bob's café", ["bob", "s", "café"]),
        ("\u5317\u4eac\u5927\u5b66", ["\u5317\u4eac", "\u4eac\u5927", "\u5927\u5b66"]),
        ("GPT-4\u5f88\u597d\u3002\u662f", ["gpt", "4", "\u5f88\u597d", "\u662f"]),
        ("\u6771\u4eac\u30bf\u30ef\u30fc", ["\u6771\u4eac", "\u4eac\u30bf", "\u30bf\u30ef", "\u30ef\u30fc"]),
        # Thai keeps the vowel marks with their letters.
        (
            "\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48",
            ["\u0e17\u0e35\u0e48\u0e19", "\u0e35\u0e48\u0e19\u0e35", "\u0e48\u0e19\u0e35\u0e48"],
        ),
        # Hindi is spaced, and its vowel signs belong to the word.
        (
            "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902",
            ["\u0939\u093f\u0928\u094d\u0926\u0940", "\u092e\u0947\u0902"],
        ),
        ("", []),
    ],
)
def test_runs_of_unspaced_scripts_are_cut_into_pieces(text: str, cut: list[str]) -> None:
    assert words(text) == cut


@pytest.mark.parametrize(
    "text", ["plain words, as ever", "schöne Grüße", "два слова", "\u0928\u092e\u0938\u094d\u0924\u0947"]
)
def test_spaced_scripts_are_left_as_they_are(text: str) -> None:
    assert spaced(text) == text


def test_common_words_are_left_out_unless_there_are_no_others() -> None:
    assert content_words("What is the capital of Italy?") == ["capital", "italy"]
    assert content_words("Who are you?") == ["who", "are", "you"]


def test_words_are_counted_in_every_script() -> None:
    assert count_words("one two three") == count_words("один два три") == 3
    assert count_words("\u6211\u4eec\u5728\u5317\u4eac\u5927\u5b66\u5b66\u4e60") == 5
    assert count_words("AI \u5f88\u597d") == 2
