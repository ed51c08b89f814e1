"""Long texts cut into passages: they cover the text, stay short, and are found by their words."""

import pytest

from reflective_agents.web_search.packing import PASSAGE_WORDS
from reflective_agents.web_search.passages import LONGEST_PASSAGE, passages_of

FACTS = {
    "English": (
        "The harbour was quiet. ",
        "The code of the northern gate is 7341. ",
        "Which code has the northern gate?",
    ),
    "Chinese": ("那天港口很安静。", "北门的密码是7341。", "北门的密码是多少？"),
    "Thai": ("วันนั้นท่าเรือเงียบ ", "รหัสของประตูทิศเหนือคือ 7341 ", "รหัสประตูทิศเหนือคืออะไร"),
}


@pytest.mark.parametrize("language", FACTS)
def test_the_passage_with_the_fact_is_found(language: str) -> None:
    line, fact, question = FACTS[language]
    text = line * 2_000 + fact + line * 2_000
    best = passages_of(text).best(question, 1)[0]
    assert fact.strip() in text[best.begin : best.end]


def test_passages_are_short_whatever_the_text() -> None:
    for part in ["a", "\n", " ", ". ", "x\n \n", "word ", "一", '{"a": [1, 2]}, ']:
        text = part * 20_000 + "needle " + part * 20_000
        for span in passages_of(text).best("needle", 100):
            assert 0 <= span.begin < span.end <= len(text)
            assert span.end - span.begin <= 2 * LONGEST_PASSAGE


def test_passages_are_cut_between_sentences_at_about_so_many_words() -> None:
    text = "The needle of this compass points to the north. " * 200
    lengths = [len(text[span.begin : span.end].split()) for span in passages_of(text).best("needle", 100)]
    assert all(length % 9 == 0 for length in lengths)
    assert PASSAGE_WORDS < max(lengths) <= PASSAGE_WORDS * 1.25


def test_a_query_is_plain_words() -> None:
    index = passages_of("One thing. Another thing.")
    assert index.best('" OR NEAR(', 3) == []
    assert index.best("", 3) == []
    assert index.best("another*", 3) == [(0, 25)]
