"""Reading text for the offline model: sentences out of Markdown, the terms in them, and how well they fit a question.

Words are cut in any script and compared by their stems, so that "reflecting" meets "Reflection".
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING

from reflective_agents.text.bm25 import damping, idf, saturated
from reflective_agents.text.sentences import split
from reflective_agents.text.stems import stems
from reflective_agents.text.words import STOPWORDS, cut

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

TITLE_WEIGHT = 0.3
"""What an occurrence in the title of a passage counts beside one in the sentence itself."""

# Chinese is cut into pairs of characters. Those that a question word makes with its neighbours stand in no answer.
_SMALL_WORDS = re.compile(
    r"(?:[为為]|要?[做干幹])?什[么麼]|怎[么麼][样樣]?|怎[样樣]|如何|多少[天年次人个個元]?|(?<![许許很更众眾])多[久长長大高远遠]|"
    r"[几幾][天年次人个個元]|[谁誰]|哪(?!吒)[一个個些里裡儿兒]?|[吗嗎呢](?=[？?！!。\s]|$)|是否|之[后後前间間]"
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
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # here, since only the offline model reads Markdown so

    return MarkdownIt("commonmark").enable("table").disable("code")


def paragraphs(text: str) -> Iterator[str]:
    """Yield a Markdown text's paragraphs as plain text: no headings, tables, code blocks, pictures or list markers."""
    opened = ""
    for token in _markdown().parse(text):
        if token.type == "inline" and opened == "paragraph_open":
            shown = [part for part in token.children or () if part.type in _KEPT]
            parts = [" " if part.type.endswith("break") else part.content for part in shown]
            yield " ".join("".join(parts).split())
        opened = token.type


@lru_cache(maxsize=1024)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a Markdown text, as plain text."""
    return tuple(chain.from_iterable(map(split, paragraphs(text))))


def _content_words(text: str) -> list[str]:
    return [word for word in cut(_SMALL_WORDS.sub(" ", text)) if word.lower() not in STOPWORDS]


@lru_cache(maxsize=1024)
def terms(text: str) -> Mapping[str, str]:
    """Return the content terms of a text in order: the stem, and the word as it stood there. Stopwords are left out."""
    words = _content_words(text)
    by_stem: dict[str, str] = {}
    for word, counts in zip(words, stems(words), strict=True):
        for stem in counts:
            by_stem.setdefault(stem, word)
    return MappingProxyType(by_stem)


def rank(passages: Iterable[Passage], words: Iterable[str]) -> list[Sentence]:
    """Return every sentence of the passages in reading order, ranked by BM25 for any of the words."""
    rows = [(passage, text) for passage in passages for text in sentences(passage.content)]
    contents = stems([" ".join(_content_words(text)) for _, text in rows])
    titles = stems([" ".join(_content_words(passage.title)) for passage, _ in rows])
    counted = list(zip(contents, titles, strict=True))
    lengths = [float(content.total() + title.total()) for content, title in counted]
    usual = fmean(lengths) if lengths else 0.0
    damped = [damping(length, usual) for length in lengths]
    scores = [0.0] * len(rows)
    for stem in dict.fromkeys(chain.from_iterable(stems([*words]))):
        counts = [content[stem] + TITLE_WEIGHT * title[stem] for content, title in counted]
        weight = idf(len(rows) - counts.count(0), len(rows))
        for row, count in enumerate(counts):
            scores[row] += saturated(count, damped[row], weight)
    ranked: list[Sentence] = []
    for (passage, text), content, score in zip(rows, contents, scores, strict=True):
        ranked.append(Sentence(text, passage, frozenset(content), score))
    return ranked
