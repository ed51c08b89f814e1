"""Cutting the paragraphs of a document into passages."""

import re
import textwrap
from collections.abc import Iterable, Iterator

from reflective_agents.text.words import count_words

PASSAGE_WORDS = 120
"""Words a passage aims at, in any script: a paragraph group of an answer's size, so that a few fit into a prompt."""

# A sentence with the white space behind it; the full stops of unspaced scripts need none.
_SENTENCE = re.compile(
    r".+?(?:[.!?]\s+|[\u3002\uff01\uff1f\uff61\u104b\u17d4][\u300d\u300f\u201d\u2019\uff09]*\s*|\Z)", re.DOTALL
)


def fenced(code: str) -> str:
    """Return code between fences, as in Markdown, so that no line of it is taken for a sentence; "" if it is blank."""
    printable = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", code.encode("utf-8", "ignore").decode())
    lines = [line.rstrip() for line in textwrap.dedent(printable.expandtabs(4)).splitlines()]
    text = "\n".join(lines).strip("\n")
    fence = max(["```", *(f"{run}`" for run in re.findall("`{3,}", text))], key=len)
    return f"{fence}\n{text}\n{fence}" if text else ""


def pack(paragraphs: Iterable[str]) -> Iterator[str]:
    """Join short paragraphs and cut long ones at the ends of sentences, towards `PASSAGE_WORDS` words.

    A line break stays where a paragraph began. Only code has several lines: it is cut between them.
    """
    buffer, size = "", 0
    for paragraph in paragraphs:
        for sentence in _pieces(paragraph):
            more = count_words(sentence)
            if buffer and size + more > PASSAGE_WORDS * 1.25:
                yield buffer.strip()
                buffer, size = "", 0
            buffer, size = buffer + sentence, size + more
            if size > PASSAGE_WORDS * 2:  # no end of a sentence in sight: tables, lists, code
                *heads, buffer = _cut(buffer, size)
                yield from map(str.strip, heads)
                size = count_words(buffer)
        if size >= PASSAGE_WORDS * 0.75:
            yield buffer.strip()
            buffer, size = "", 0
    if buffer.strip():
        yield buffer.strip()


def _pieces(paragraph: str) -> Iterator[str]:
    """Yield a paragraph's sentences; of code whole fenced blocks of `PASSAGE_WORDS` words at most."""
    fence, is_code, code = paragraph.partition("\n")
    if not is_code:
        yield from _SENTENCE.findall(f"{paragraph}\n")
        return
    lines: list[str] = []
    size = 0
    for line in code.removesuffix(fence).splitlines():
        for part in _cut(line, len(line)):  # no line has more words than characters: all of it is cut
            more = count_words(part)
            if lines and size + more > PASSAGE_WORDS:
                yield "\n".join([fence, *lines, f"{fence}\n"])
                lines, size = [], 0
            lines.append(part)
            size += more
    yield "\n".join([fence, *lines, f"{fence}\n"])


def _cut(text: str, size: int) -> Iterator[str]:
    """Cut a text of so many words into pieces of `PASSAGE_WORDS`, in one pass; what has no blanks is cut anywhere.

    The last piece, which is what is left, has up to twice as many.
    """
    begin, words = 0, 0
    for part in re.finditer(r"\S{1,20}\s*", text):
        more = count_words(part[0])
        if words and words + more > PASSAGE_WORDS:
            yield text[begin : part.start()]
            begin, size, words = part.start(), size - words, 0
            if size <= PASSAGE_WORDS * 2:
                break
        words += more
    yield text[begin:]
