"""Where the sentences of a text begin and end, in scripts with and without blanks."""

import re
from collections.abc import Iterator

# A single letter is an initial.
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|cf|vs|al|figs?|eq|vol|dr|mrs?|ms|prof|st|approx|ca|nr|mio|mrd|bzw|[a-z])\.$", re.I
)
_ITEM = re.compile(r"\s*\d{1,3}[.)]\s*")
_ORDINAL = re.compile(r"(?<!\d)\d{1,2}\.\]?$")
_COUNTED = re.compile(  # what follows an ordinal in German: "am 1. M\u00e4rz", "im 19. Jahrhundert"
    r"Jan|J\u00e4n|Feb|M\u00e4r|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahr(?:hundert|tausend)"
)
_SENTENCE_END = re.compile(
    # Possessive, and begun at the first sign of a run only: a long row of dots would take quadratic time.
    r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019)\]*_]*(?:\s*\[\d+\])*\s+"
    r"(?=[*_]{0,3}[\"'\u201c\u2018(\[]?[A-Z0-9\u00c0-\u00de\u0391-\u03ab\u0400-\u042f\u0590-\u1cff\u3040-\ud7ff])"
    r"|[\u3002\uff01\uff1f\u0964\u06d4\u061f]\s*"  # the full stops of Chinese, Japanese, Hindi, Urdu, Arabic
)
_FENCE = re.compile(r"\s*(```|~~~)")
_LABEL = r"(?:\*\*|__)[^*_\n]{1,60}(?::(?:\*\*|__)|(?:\*\*|__):)"
_BLOCK = re.compile(rf"\s*(?:$|[-+*•]\s|\d{{1,3}}[.)、]\s?|#{{1,6}}\s|>|\||{_LABEL})")
_HEADING = re.compile(r"\s*#{1,6}\s")
_RULE = re.compile(r"[^\S \t]*+[-=*_|: \t]++$")
_LONGEST_ABBREVIATION = 40
"""Characters at the end of a sentence in which an abbreviation is looked for."""


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a plain text begins and ends, with the citations that follow its full stop."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        tail = text[max(start, end.end() - _LONGEST_ABBREVIATION) : end.end()].rstrip()
        # "1. First": the number of an item is no sentence of its own.
        if _ITEM.fullmatch(text, start, end.end()):
            continue
        is_ordinal = _ORDINAL.search(tail) and _COUNTED.match(text, end.end())
        if not is_ordinal and not _ABBREVIATION.search(tail):
            yield start, end.end()
            start = end.end()
    if start < len(text):
        yield start, len(text)


def split(text: str) -> list[str]:
    """Return the sentences of a plain text, each with the citations that follow its full stop."""
    sentences = [text[begin:end].strip() for begin, end in sentence_spans(text)]
    return [*filter(None, sentences)]


def prose_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a Markdown text stands: those of code are none, nor are rules.

    A paragraph may have several lines; an item of a list, a row of a table, a heading and a line with a bold label
    ("**Cost:** ...") begin anew.
    """
    for begin, end in _blocks(text):
        for first, last in sentence_spans(text[begin:end]):
            if any(character.isalnum() for character in text[begin + first : begin + last]):
                yield begin + first, begin + last


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    begin = position = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        opens = _FENCE.match(line)
        rule, heading = _RULE.match(line), _HEADING.match(line)
        if fence or opens or rule or _BLOCK.match(line):
            yield begin, position
            begin = position
        position += len(line)
        if heading and not fence:
            yield begin, position
        if fence or opens or rule or heading:
            begin = position
        if fence:
            fence = "" if line.lstrip().startswith(fence) else fence
        elif opens:
            fence = opens[1]
    yield begin, position


def is_heading(text: str) -> bool:
    """Tell whether a sentence of a Markdown text is the heading of what follows."""
    return _HEADING.match(text) is not None
