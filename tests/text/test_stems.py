"""Stems: what two texts have in common, however their words are inflected or written."""

from reflective_agents.text.stems import query_stems, stem, stems


def test_inflected_and_accented_words_meet() -> None:
    first, second = stems(["Running to the Caf\u00e9s", "he runs to a cafe"])
    assert {"run", "cafe"} <= first.keys() & second.keys()
    assert stems(["tea, Tea and TEA"])[0]["tea"] == 3


def test_texts_are_told_apart_and_nothing_is_left_of_earlier_ones() -> None:
    assert stems(["bob", "", "two"]) == [{"bob": 1}, {}, {"two": 1}]
    assert stems([]) == []
    assert stems(["bob"]) == [{"bob": 1}]


def test_scripts_without_blanks_are_cut() -> None:
    assert stems(["\u5317\u4eac\u5927\u5b66"])[0].keys() == {"\u5317\u4eac", "\u4eac\u5927", "\u5927\u5b66"}


def test_a_query_is_its_content_words_and_may_hold_anything() -> None:
    assert query_stems("Where is the running club?") == {"run", "club"}
    assert query_stems('"a OR b" NEAR( \ud800') == {"near", "b"}


def test_one_word_has_the_stem_that_texts_count() -> None:
    for word in ("reflections", "baking", "relational", "moons"):
        assert [stem(word)] == [*stems([word])[0]]
