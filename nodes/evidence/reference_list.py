"""The list of references at the end of an answer: how its lines are written, and how a list is told from the text."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from textwrap import shorten

from reflective_agents.models.language import is_english, name_of
from reflective_agents.prompts import search as prompts
from reflective_agents.text.brackets import marks
from reflective_agents.text.words import count_words

LONGEST_HEADING = 40
"""Characters of a line that may be the heading of a list of references."""
LONGEST_TITLE = 120
"""Characters of a title in a list of references."""
ENDS = ".,;:!?*_"
"""Signs behind an address that are no part of it."""
HEADINGS = {
    "Chinese": "参考资料",
    "simplified Chinese": "参考资料",
    "traditional Chinese": "參考資料",
    "Japanese": "参考資料",
    "Korean": "참고 자료",
    "Thai": "แหล่งอ้างอิง",
    "Greek": "Πηγές",
    "Hebrew": "מקורות",
    "German": "Quellen",
    "French": "Références",
    "Spanish": "Referencias",
    "Portuguese": "Referências",
    "Italian": "Riferimenti",
    "Dutch": "Bronnen",
    "Danish": "Kilder",
    "Norwegian": "Kilder",
    "Swedish": "Källor",
    "Romanian": "Surse",
}
"""What the list is called in the languages that `name_of` tells apart."""

_IN_LISTS = ("reference", "http", "corpus:", "tool:", "message:", *{heading.lower() for heading in HEADINGS.values()})
"""What a list of references has at least one of, in small letters."""
# Possessive throughout, since a line of thousands of blanks would otherwise be read anew from each of them.
_HEADING = re.compile(r"\s*+(?:#++\s*+)?\**+\s*+references?+\s*+[:：]?+\**+[:：]?+\s*+", re.IGNORECASE)
_ENTRY = re.compile(r"^\W{0,8}(\d{1,3})\W{1,4}[^\n]*?((?:https?|corpus|tool|message):[^\s<>]+)")
_TITLED = re.compile(r"^\[s?\d{1,3}\] (\S[^\n]*?), ((?:https?|corpus|tool|message):[^\s<>]+)$", re.MULTILINE)
_SCHEME = re.compile(r"(https?|corpus|tool|message):(?=\S)")


def reference_line(url: str, title: str) -> str:
    """Return an address as a list of references shows it: after its title, if that is known."""
    # A title that holds an address would be read as the entry's own.
    title = shorten(_SCHEME.sub(r"\1: ", title), LONGEST_TITLE, placeholder=" ...")
    return f"{title}, {url}" if title else url


def with_list(body: str, lines: Iterable[str]) -> str:
    """Return an answer with its list of references, under a heading in the language of the answer."""
    language = None if is_english(body) else name_of(body)
    return "\n".join([body, "", f"{HEADINGS.get(language or '', 'References')}:", *lines])


def length_text(answer: str) -> str:
    """Return how long an answer is without its list of references, as a fact for those who judge it."""
    body, _ = split_references(answer)
    return prompts.LENGTH.format(words=count_words(body), characters=len(body))


def titles_in(text: str) -> dict[str, str]:
    """Read the titles from lists of references that were made by `reference_line`, by their addresses."""
    return {url: title for title, url in _TITLED.findall(text)}


def is_heading(line: str) -> bool:
    """Tell whether a line is the heading of a list of references."""
    return bool(_HEADING.fullmatch(line))


def may_head_entries(line: str) -> bool:
    """Tell whether a line is the heading of a list if entries follow it, in any language: `Quellen:`."""
    heading = line.rstrip(" *_")
    return len(heading) <= LONGEST_HEADING and heading.endswith((":", "："))


def is_entry(line: str) -> bool:
    """Tell whether a line may be an entry of a list of references: a number, and an address."""
    return bool(_ENTRY.match(line))


@lru_cache(maxsize=256)
def _split(answer: str) -> tuple[str, tuple[tuple[int, str], ...]]:
    small = answer.lower()
    if not any(part in small for part in _IN_LISTS):
        return answer, ()
    lines = answer.split("\n")
    begin = _list_begins(lines)
    if begin == len(lines):
        return answer, ()
    entries: list[tuple[int, str]] = []
    for line in lines[begin:]:
        if entry := _ENTRY.match(line):
            entries.append((int(entry[1]), entry[2].rstrip(ENDS)))
    return "\n".join(lines[:begin]).rstrip(), tuple(entries)


def split_references(answer: str) -> tuple[str, dict[int, str]]:
    """Split off the list of references that an answer ends with, under a heading or because the answer cites it.

    Returns:
        The answer without it, and the addresses in it by their numbers.
    """
    body, entries = _split(answer)
    return body, dict(entries)


def _list_begins(lines: Sequence[str]) -> int:
    """Return the line of the heading, or else of the first of the entries that end the text; the end if none does."""
    written = [number for number, line in enumerate(lines) if line.strip()]
    if not written:
        return len(lines)
    first, *others = written
    for number in others:
        if is_heading(lines[number]):
            return number
    begin = len(lines)
    while begin and (not lines[begin - 1].strip() or is_entry(lines[begin - 1])):
        begin -= 1
    if begin <= first or begin == len(lines):
        return len(lines)
    if begin - 1 > first and lines[begin - 1].strip(" :") in HEADINGS.values():
        return begin - 1
    # Where nothing is cited, a numbered list of addresses is the answer itself.
    if not marks("\n".join(lines[:begin])):
        return len(lines)
    return begin - (begin - 1 > first and may_head_entries(lines[begin - 1]))
