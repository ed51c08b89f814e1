"""What code can say of a sentence and the passages that it cites: which numbers and names these lack, and whether words
are quoted from them."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from reflective_agents.text.normal import numbers, tidy
from reflective_agents.text.words import STOPWORDS, cut

SAME_STEM = 4
"""Letters at the beginning that two forms of a name share."""
COMMON_WORDS, QUOTED_WORDS = 0.4, 0.8
"""Shares of a sentence's words that a passage has: where both are of one thing in one language; where one is almost a
quotation of the other."""

_FIGURE = re.compile(r"\d(?:[\d.,']*\d)?")
# Python refuses to read numbers of more than 4,300 digits, and nobody writes one of more than twenty.
_WHOLE_NUMBER = re.compile(r"(?<![.,'\d])\d{1,20}(?![.,']?\d)")
_OMISSION = re.compile(r"\.{3,}|…+|\[\s*(?:\.{3}|…)\s*\]")


def missing_in(passages: Sequence[str], sentence: str) -> list[str]:
    """Return the numbers and names of a sentence that stand in none of some passages. They may still be right: rounded,
    translated, or in another form."""
    known = _contents(tuple(passages))
    sentence = tidy(sentence)
    missing = [*_missing_figures(known, sentence), *_missing_words(known, sentence)]
    return list(dict.fromkeys(missing))


class _Contents(NamedTuple):
    """What code looks up in passages: values, numbers as written, words, and how words begin."""

    values: frozenset[Fraction]
    figures: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]


@lru_cache(maxsize=64)
def _contents(passages: tuple[str, ...]) -> _Contents:
    """Read passages, once for all sentences that cite them."""
    text = tidy("\n".join(passages))
    words = frozenset(cut(text.casefold()))
    return _Contents(
        # Also the digits in names such as A320, which are no numbers otherwise.
        frozenset([*numbers(text), *map(Fraction, _WHOLE_NUMBER.findall(text))]),
        frozenset(_without_groups(figure) for figure in _FIGURE.findall(text)),
        words,
        frozenset(word[:SAME_STEM] for word in words),
    )


def _missing_figures(known: _Contents, sentence: str) -> list[str]:
    missing: list[str] = []
    for figure in _FIGURE.findall(sentence):
        is_known = known.values.issuperset(numbers(figure)) or _without_groups(figure) in known.figures
        if not is_known:
            missing.append(figure)
    return missing


def _without_groups(figure: str) -> str:
    """Return a number without its separators of thousands, which are others in other languages."""
    return re.sub(r"[.,'](?=\d{3}(?!\d))", "", figure)


def _missing_words(known: _Contents, sentence: str) -> list[str]:
    """Return the names that a text lacks, and what a sentence adds in one place to what is else a quotation of it.

    Capitals are no sign of a name in German, there are none in Chinese, and a name may be translated: so a sentence
    that shares few of its other words with the text is not compared.
    """
    words = cut(sentence)
    plain = [word for word in words if not (word[:1].isupper() or word[:1].isnumeric())]
    lacking = {word for word in plain if word.casefold() not in known.words}
    found = sum(word not in lacking for word in plain)
    shared = found / len(plain) if plain else 1
    if shared < COMMON_WORDS:
        return []
    missing = _missing_names(words, known.stems)
    added = _runs(words, lacking)
    if len(added) == 1 and shared >= QUOTED_WORDS:
        missing += added
    return missing


def _missing_names(words: Sequence[str], stems: Collection[str]) -> list[str]:
    """Return the words in capitals that others do not begin like; the first only as a part of a name of several, and
    not a small word before one: "Only Kell Haven"."""
    begins_with_name = len(words) > 1 and words[1][0].isupper() and words[0].casefold() not in STOPWORDS
    missing: list[str] = []
    for word in words if begins_with_name else words[1:]:
        is_name = word[0].isupper() and len(word) > 1
        if is_name and word.casefold()[:SAME_STEM] not in stems:
            missing.append(word)
    return missing


def _runs(words: Sequence[str], lacking: Collection[str]) -> list[str]:
    """Join the lacking words that follow each other; pieces of unspaced scripts overlap."""
    runs: list[str] = []
    for before, word in pairwise(["", *words]):
        if word in lacking and before in lacking:
            runs[-1] += word[-1] if runs[-1].endswith(word[:-1]) else f" {word}"
        elif word in lacking:
            runs.append(word)
    return runs


def stands_in(passages: Sequence[str], words: str) -> bool:
    """Tell whether quoted words stand in passages; case, blanks, punctuation and what was left out do not count."""
    folded = [_letters(passage) for passage in passages]
    parts = [part for part in map(_letters, _OMISSION.split(words)) if part]
    for part in parts:
        if not any(part in passage for passage in folded):
            return False
    return bool(parts)


@lru_cache(maxsize=64)
def _letters(text: str) -> str:
    """Fold a text, a passage once for all sentences that cite it."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
