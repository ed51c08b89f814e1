"""Reading text for the offline model: sentences out of Markdown, terms and ranks out of SQLite's full-text search.

Words are cut in any script, compared, and sentences ranked, by FTS5 with its Porter tokenizer, so that "reflecting"
meets "Reflection".
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from markdown_it import MarkdownIt

from reflective_agents.text.stems import TOKENIZER
from reflective_agents.text.words import STOPWORDS, cut

TABLE = f"""
create virtual table text using fts5(title, content, tokenize = "{TOKENIZER}");
create virtual table term using fts5vocab(text, 'instance');
"""
TITLE_WEIGHT, CONTENT_WEIGHT = 0.3, 1.0

_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|al|figs?|eq|vol|dr|mrs?|ms|prof|st|approx|[a-z])\.$", re.I)
_SENTENCE_END = re.compile(
    r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?:\s*\[\d+\])*\s+(?=[\"'\u201c\u2018(\[]?[A-Z0-9\u00c0-\u00de])"
    r"|[\u3002\uff01\uff1f]\s*"  # the full stops of Chinese and Japanese
)
_KEPT = {"text", "code_inline", "softbreak", "hardbreak"}


@dataclass(frozen=True)
class Passage:
    """A piece of evidence: a search result, or (with an empty `url`) text that stands in the conversation."""

    title: str
    url: str
    content: str


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage, the stems in it, and its rank for what was asked (0: no match; higher is better)."""

    text: str
    passage: Passage
    stems: frozenset[str]
    score: float


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").disable("code")


def paragraphs(text: str) -> Iterator[str]:
    """Yield a Markdown text's paragraphs as plain text: no headings, tables, code blocks, pictures or list markers."""
    opened = ""
    for token in _markdown().parse(text):
        if token.type == "inline" and opened == "paragraph_open":
            kept = [part for part in token.children or () if part.type in _KEPT]
            parts = [" " if part.type.endswith("break") else part.content for part in kept]
            yield " ".join("".join(parts).split())
        opened = token.type


def split(text: str) -> list[str]:
    """Return the sentences of a plain text, each with the citations that follow its full stop."""
    sentences, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(text[start : end.end()].rstrip()):
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    return [sentence for sentence in (*sentences, text[start:].strip()) if sentence]


@lru_cache(maxsize=1024)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a Markdown text, as plain text."""
    return tuple(sentence for paragraph in paragraphs(text) for sentence in split(paragraph))


def _content_words(text: str) -> list[str]:
    return [word for word in cut(text) if word.lower() not in STOPWORDS]


@lru_cache(maxsize=1024)
def terms(text: str) -> Mapping[str, str]:
    """Return the content terms of a text in order: the stem, and the word as it stood there. Stopwords are left out."""
    words = _content_words(text)
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(TABLE)
        database.executemany("insert into text values ('', ?)", ((word,) for word in words))
        found: dict[str, str] = {}
        for stem, row in database.execute("select term, doc from term order by doc"):
            found.setdefault(stem, words[row - 1])
    return MappingProxyType(found)


def rank(passages: Iterable[Passage], words: Iterable[str]) -> list[Sentence]:
    """Return every sentence of the passages in reading order, ranked by BM25 for any of the words."""
    rows = [(passage, text) for passage in passages for text in sentences(passage.content)]
    query = " OR ".join(f'"{word}"' for word in words)
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(TABLE)
        content = ((" ".join(_content_words(part)) for part in (passage.title, text)) for passage, text in rows)
        database.executemany("insert into text values (?, ?)", map(tuple, content))
        stems: list[set[str]] = [set() for _ in rows]
        for stem, row in database.execute("select term, doc from term where col = 'content'"):
            stems[row - 1].add(stem)
        ranks = f"select rowid, -bm25(text, {TITLE_WEIGHT}, {CONTENT_WEIGHT}) from text where text match ?"
        scores: dict[int, float] = dict(database.execute(ranks, (query,)) if query else ())
    return [
        Sentence(text, passage, frozenset(stems[place]), max(scores[place + 1], 1e-9) if place + 1 in scores else 0.0)
        for place, (passage, text) in enumerate(rows)
    ]
