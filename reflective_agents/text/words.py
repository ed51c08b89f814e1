"""Words in any language: what is compared when a text is searched, and how many there are.

Chinese, Japanese, Korean, Thai and their like put no blanks between words, or not between all of them. Overlapping
pieces of their runs of characters serve as words: pairs where a character is a syllable or a word, and four letters at
a time, marks included, where a script is an alphabet. Both sides of a comparison are cut alike, so no dictionary is
needed.
"""

import re
from functools import cache
from math import ceil
from unicodedata import category

SYLLABLES = (
    "\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Han, kana, bopomofo, Hangul."""
LETTERS = (
    "\u0e00-\u0e4e\u0e50-\u0e59\u0e80-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17dc-\u17dd\u17e0-\u17e9"
)
"""Thai, Lao, Burmese, Khmer: letters and marks, without their punctuation."""
_RUN = re.compile(f"([{SYLLABLES}]+)|([{LETTERS}]+)")
_ASCII_WORD = re.compile(r"[^\W_]+")
_SYLLABLES_A_WORD, _LETTERS_A_WORD = 2, 5
"""Characters of a word, on average."""

STOPWORDS = frozenset(
    """
    a about above after again against all also am an and any are as ask asks at be became because been before being
    below between both but by can could did do does doing done down during each either else etc ever every few for from
    further get give gives had has have having he her here hers him his how i if in into is it its itself just let like
    made make makes many may me might more most much must my neither no nor not of off on once one only or other our
    out over own same say shall she should since so some such tell than that the their them then there these they this
    those through to too under until up upon us use used uses using very was we were what when where whether which
    while who whom whose why will with within without would you your answer article brief briefly compare compose
    describe detail detailed discuss draft essay explain list mean means outline paragraph paragraphs please question
    sentence sentences short summarise summarize summary word words write
    """.split()  # noqa: SIM905 - a list of 190 quoted words is harder to read
)
"""English words that say little about what is asked."""


def spaced(text: str) -> str:
    """Put blanks between the words of a text that has none: runs of unspaced scripts become overlapping pieces.

    All else stays as it is, so a text in a spaced script comes back unchanged.
    """
    return text if text.isascii() else _RUN.sub(lambda run: f" {' '.join(_pieces(run))} ", text)


def cut(text: str) -> list[str]:
    """Return the words of a text in order, as they stand there; pieces of them in unspaced scripts."""
    pattern = _ASCII_WORD if text.isascii() else _word()
    return pattern.findall(spaced(text))


def words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded; pieces of them in unspaced scripts."""
    return cut(text.casefold())


def is_of_syllables(word: str) -> bool:
    """Tell whether each character of a word is a syllable or a word itself, as in Chinese."""
    run = _RUN.fullmatch(word)
    return bool(run and run[1])


def is_pair(word: str) -> bool:
    """Tell whether a word is two characters out of a text without blanks, which may belong to two words."""
    return len(word) == 2 and is_of_syllables(word)


def content_words(text: str) -> list[str]:
    """Return the words of a text without the most common English ones, unless it has no others."""
    every = words(text)
    return [word for word in every if word not in STOPWORDS] or every


def count_words(text: str) -> int:
    """Count the words of a text; in unspaced scripts, approximately."""
    if text.isascii():
        return len(text.split())
    syllables, letters = 0, 0
    for in_syllables, in_letters in _RUN.findall(text):
        syllables += len(in_syllables)
        letters += len(in_letters)
    spaced = len(_RUN.sub(" ", text).split())
    return spaced + ceil(syllables / _SYLLABLES_A_WORD) + ceil(letters / _LETTERS_A_WORD)


def _pieces(run: re.Match[str]) -> list[str]:
    text, size = run[0], 2 if run[1] else 4
    return [text[start : start + size] for start in range(max(len(text) - size, 0) + 1)]


@cache
def _word() -> re.Pattern[str]:
    """Match letters and digits with the marks on them, which Python does not count as letters."""
    # Marks of Indian and Arabic scripts, for example, without which their words would fall to pieces.
    marks = "".join(chr(code) for code in range(0x300, 0x1F000) if category(chr(code))[0] == "M")
    return re.compile(rf"(?:[^\W_]|[{marks}])+")
