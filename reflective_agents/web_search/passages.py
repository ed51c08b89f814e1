"""One long text cut into passages, of which those are found that fit a question; nothing of it leaves the memory."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from reflective_agents.text.stems import TOKENIZER
from reflective_agents.text.words import count_words, spaced
from reflective_agents.web_search.corpus import any_of, terms_of
from reflective_agents.web_search.packing import PASSAGE_WORDS

MOST_TEXTS = 8
"""Texts whose passages are remembered: the one asked least recently is cut anew."""
LONGEST_PASSAGE = 1_200
"""Characters of a passage at most, where no sentence ends."""
# A sentence with the white space behind it. All repetitions are bounded: a text may be made to keep a reader busy.
_SENTENCE = re.compile(
    r".{1,400}?(?:[.!?][^\S\n]{1,50}|\n[^\S\n]{0,50}\n|[.!?]\n|[\u3002\uff01\uff1f\uff61\u104b\u17d4]+|\Z)|.{1,400}",
    re.DOTALL,
)


class Span(NamedTuple):
    """A part of a text, by the characters at which it begins and ends."""

    begin: int
    end: int


class PassageIndex:
    """The passages of a text. Made by `passages_of`; it may be asked from any thread, and blocks."""

    def __init__(self, text: str) -> None:
        self.text, self._lock = text, threading.Lock()
        self._spans = [*_spans(text)]
        # `best` is called from any thread; its lock keeps them apart.
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute(f"CREATE VIRTUAL TABLE words USING fts5(text, content = '', tokenize = \"{TOKENIZER}\")")
        rows = ((number, spaced(text[begin:end])) for number, (begin, end) in enumerate(self._spans))
        self._index.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)

    def best(self, query: str, most: int) -> list[Span]:
        """Return the passages that fit a query best, the best first; none if no word of it occurs."""
        terms = any_of(terms_of(query))
        if not terms:
            return []
        with self._lock:
            rows = self._index.execute(
                "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words), rowid LIMIT ?", (terms, most)
            ).fetchall()
        return [self._spans[number] for (number,) in rows]


@lru_cache(maxsize=MOST_TEXTS)
def passages_of(text: str) -> PassageIndex:
    """Cut a text into passages. It takes a second for some millions of characters: call it from a thread."""
    return PassageIndex(text)


def _spans(text: str) -> Iterator[Span]:
    """Cut a text at the ends of sentences, towards `PASSAGE_WORDS` words, into spans that follow each other."""
    begin = words = 0
    for sentence in _SENTENCE.finditer(text):
        more = count_words(sentence[0])
        if words + more > PASSAGE_WORDS * 1.25 or sentence.end() - begin > LONGEST_PASSAGE:
            if words:
                yield Span(begin, sentence.start())
            begin, words = sentence.start(), 0
        words += more
    if text[begin:].strip():
        yield Span(begin, len(text))
