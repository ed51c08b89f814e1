"""BM25 is that of SQLite, which counts the words of columns by their weights."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from reflective_agents.text.bm25 import damping, idf, saturated
from reflective_agents.text.extract import TITLE_WEIGHT, Passage, rank
from reflective_agents.text.stems import TOKENIZER

TITLES = ["Bread", "Moon", "Tides", "Rye bread"]
TEXTS = [
    "Bakers bake rye bread before dawn.",
    "The moon raises tides.",
    "Tides rise twice, for the moon pulls.",
    "Dough rests.",
]


def sqlite_scores(query: str) -> dict[str, float]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f'CREATE VIRTUAL TABLE texts USING fts5(title, text, tokenize = "{TOKENIZER}")')
        database.executemany("INSERT INTO texts VALUES (?, ?)", zip(TITLES, PLAIN, strict=True))
        weighted = f"SELECT rowid, -bm25(texts, {TITLE_WEIGHT}, 1) FROM texts WHERE texts MATCH ?"
        return {TEXTS[row - 1]: score for row, score in database.execute(weighted, (query,))}


PLAIN = ["Bakers bake rye bread dawn", "moon raises tides", "Tides rise twice moon pulls", "Dough rests"]
"""The texts without their stop words, which a ranking of sentences leaves out."""


@pytest.mark.parametrize("words", [["bread"], ["moon", "tides"], ["rye", "dough", "moons"]])
def test_sentences_are_ranked_as_sqlite_ranks_them(words: list[str]) -> None:
    passages = [Passage(title, "", text) for title, text in zip(TITLES, TEXTS, strict=True)]
    scores = {sentence.text: sentence.score for sentence in rank(passages, words) if sentence.score}
    assert scores == pytest.approx(sqlite_scores(" OR ".join(words)))


def test_a_word_that_all_texts_hold_still_counts_and_a_longer_text_counts_it_less() -> None:
    assert 0 < idf(10, 10) < idf(1, 10)
    short, long = saturated(np.ones(2), damping(np.array([5.0, 50.0]), 27.5), 1.0)
    assert short > long > 0
