"""Citations checked by code: each names a result that was found, and the list of references is built of them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import shorten
from types import MappingProxyType
from typing import NamedTuple

from reflective_agents.nodes.evidence.sources import addresses, titles_of
from reflective_agents.prompts import search as prompts

LARGEST = 999
"""Greatest number of a citation; [2024] is none."""
LONGEST_HEADING = 40
"""Characters of a line that may be the heading of a list of references."""
LONGEST_TITLE = 120
"""Characters of a title in a list of references."""
NO_TITLES: Mapping[str, str] = MappingProxyType({})

_CITATION = re.compile(r"\s?[\[【](\d{1,4}(?:\s{0,3},\s{0,3}\d{1,4}){0,99})[\]】]")
_HEADING = re.compile(r"\s*+(?:#++\s*+)?\**+\s*+references?+\s*+[:：]?+\**+[:：]?+\s*+", re.IGNORECASE)
_ENTRY = re.compile(r"^\W{0,8}(\d{1,3})\W{1,4}[^\n]*?((?:https?|corpus|tool):[^\s<>]+)")
_TITLED = re.compile(r"^\[s?\d{1,3}\] (\S[^\n]*?), ((?:https?|corpus|tool):[^\s<>]+)$", re.MULTILINE)
_SCHEME = re.compile(r"(https?|corpus|tool):(?=\S)")
_NUMBERED = re.compile(r"\W{0,8}\d{1,3}(?:\W|$)")
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*+`)", re.DOTALL)
_ADDRESS = re.compile(r"https?://[^\s<>\"'`)\]}]+")
_ENDS = ".,;:!?*_"


class CheckedAnswer(NamedTuple):
    """An answer whose citations were checked.

    Attributes:
        body: The answer with citations of results only, and without a list.
        numbers: The results that it cites.
        wrong: What it refers to that was never found, as it names it.
        urls: The addresses of all results.
        titles: Their titles by these, as far as they are known.
    """

    body: str
    numbers: list[int]
    wrong: list[str]
    urls: Sequence[str]
    titles: Mapping[str, str] = NO_TITLES

    @property
    def text(self) -> str:
        """The answer followed by its references."""
        cited = zip(self.numbers, self.references, strict=True)
        lines = [f"[{number}] {reference_line(url, self.titles)}" for number, url in cited]
        return "\n".join([self.body, "", "References:", *lines]) if lines else self.body

    @property
    def references(self) -> list[str]:
        """The addresses of the results that it cites."""
        return [self.urls[number - 1] for number in self.numbers]

    @property
    def facts(self) -> str:
        """What was checked, for those who judge the answer."""
        if self.wrong:
            return prompts.NOT_FOUND.format(names=", ".join(self.wrong))
        if self.numbers:
            return prompts.ALL_FOUND
        return prompts.NONE_CITED.format(count=len(self.urls)) if self.urls else ""


def resolve_citations(answer: str, observations: Sequence[str], further: str = "") -> CheckedAnswer:
    """Check the citations of an answer: those that name nothing that was found are removed and reported.

    Numbers are those of the results, unless the answer brings a list of its own, whose addresses then count.

    Args:
        answer: Text with citations such as [1] or [2, 3].
        observations: What tools have answered, in order: all that it may rest on.
        further: Further text from which it may take addresses, such as the request.
    """
    material = "\n".join([*observations, further])
    return resolve_by_address(answer, addresses(observations), material, titles_of(observations))


def reference_line(url: str, titles: Mapping[str, str]) -> str:
    """Return an address as a list of references shows it: after its title, if that is known."""
    title = shorten(_SCHEME.sub(r"\1: ", titles.get(url, "")), LONGEST_TITLE, placeholder=" ...")
    return f"{title}, {url}" if title else url


def titles_in(text: str) -> dict[str, str]:
    """Read the titles from lists of references that were made by `reference_line`, by their addresses."""
    return {url: title for title, url in _TITLED.findall(text)}


def resolve_by_address(
    answer: str, urls: Sequence[str], material: str, titles: Mapping[str, str] = NO_TITLES
) -> CheckedAnswer:
    """Check the citations of an answer, as `resolve_citations` does, by the addresses of the results.

    Args:
        answer: Text with citations such as [1] or [2, 3].
        urls: The addresses, in the order of their numbers.
        material: Text that has to hold all other addresses that the answer names.
        titles: Titles of the results by address.
    """
    body, listed = split_references(answer)
    results: set[int] = set()
    wrong: dict[str, None] = {}

    def resolve(cited: Iterable[int]) -> list[int]:
        resolved: dict[int, None] = {}
        for number in cited:
            if result := _result_number(number, listed, urls):
                resolved[result] = None
            else:
                wrong[f"[{number}] {listed.get(number, '')}".strip()] = None
        results.update(resolved)
        return list(resolved)

    def corrected(match: re.Match[str]) -> str:
        cited = [int(number) for number in match[1].split(",")]
        if not all(1 <= number <= LARGEST for number in cited):
            return match[0]  # a range, an index, a year
        resolved = resolve(cited)
        return match[0] if resolved == cited else citation(match, map(str, resolved))

    if not _CITATION.search(body):
        resolve(listed)  # what is only listed is referred to as well
    text = outside_code(_CITATION, corrected, body)
    named = [url.rstrip(_ENDS) for part in _CODE.split(body)[::2] for url in _ADDRESS.findall(part)]
    wrong |= {url: None for url in named if url not in material}
    return CheckedAnswer(text.strip(), sorted(results), list(wrong), urls, titles)


def citation(match: re.Match[str], numbers: Iterable[str]) -> str:
    """Return a citation with other numbers in place of one that was matched; empty if there are none."""
    lead = match[0][: len(match[0]) - len(match[0].lstrip())]
    shown = ", ".join(numbers)
    return f"{lead}[{shown}]" if shown else ""


def outside_code(pattern: re.Pattern[str], replaced: Callable[[re.Match[str]], str], text: str) -> str:
    """Replace what a pattern finds in a text, but for the code in it."""
    parts = _CODE.split(text)
    return "".join(part if index % 2 else pattern.sub(replaced, part) for index, part in enumerate(parts))


class CitationReader:
    """Reads an answer while it comes: citations of what was not found are left out, and a list of references, which is
    made by code, is not shown. `urls` are the addresses of what was found."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._count, self._line, self._begun, self._ended = len(urls), "", False, False

    def feed(self, text: str) -> str:
        """Take the next piece, and return what is certain to stay."""
        *lines, self._line = (self._line + text).split("\n")
        answer = ""
        for line in lines:
            self._ended = self._ended or (not self._begun and bool(_HEADING.fullmatch(line) or _ENTRY.match(line)))
            answer += "" if self._ended else f"{self._checked(line)}\n"
            self._begun = False
        if self._ended or (not self._begun and _may_be_listed(self._line)):
            return answer
        opened = max(self._line.rfind("["), self._line.rfind("【"))
        whole = len(self._line) if opened < 0 or re.search(r"[\]】]", self._line[opened:]) else opened
        ready = self._line[:whole].rstrip()
        self._line, self._begun = self._line[len(ready) :], self._begun or bool(ready)
        return answer + self._checked(ready)

    def _checked(self, text: str) -> str:
        def corrected(match: re.Match[str]) -> str:
            cited = [int(number) for number in match[1].split(",")]
            if not all(1 <= number <= LARGEST for number in cited) or max(cited) <= self._count:
                return match[0]
            return citation(match, [str(number) for number in cited if number <= self._count])

        return _CITATION.sub(corrected, text)


def _may_be_listed(line: str) -> bool:
    """Return whether a line that is still coming may be the heading of a list of references, or an entry."""
    word = line.strip(" \t#*").casefold()
    return "references".startswith(word[: len("references")]) or bool(_NUMBERED.match(line))


def _result_number(cited: int, listed: Mapping[int, str], urls: Sequence[str]) -> int:
    """Return the number of the result that a citation names; 0 if there is none."""
    if cited in listed:
        return urls.index(listed[cited]) + 1 if listed[cited] in urls else 0
    return cited if cited <= len(urls) else 0


def split_references(answer: str) -> tuple[str, dict[int, str]]:
    """Split off the list of references that an answer ends with, under a heading or because the answer cites it.

    Returns:
        The answer without it, and the addresses in it by their numbers.
    """
    lines = answer.strip().splitlines()
    begin = _list_begins(lines)
    entries = [entry for line in lines[begin:] if (entry := _ENTRY.match(line))]
    return "\n".join(lines[:begin]).strip(), {int(entry[1]): entry[2].rstrip(_ENDS) for entry in entries}


def _list_begins(lines: Sequence[str]) -> int:
    """Return the line of the heading, or else of the first of the entries that end the text; the end if none does."""
    if headings := [number for number, line in enumerate(lines) if number and _HEADING.fullmatch(line)]:
        return headings[0]
    begin = len(lines)
    while begin and (not lines[begin - 1].strip() or _ENTRY.match(lines[begin - 1])):
        begin -= 1
    if not begin or not _CITATION.search("\n".join(lines[:begin])):
        return len(lines)
    heading = lines[begin - 1].rstrip(" *_")
    has_heading = begin < len(lines) and len(heading) <= LONGEST_HEADING and heading.endswith((":", "："))
    return begin - has_heading


def without_citations(answer: str) -> str:
    """Remove the citations from an answer that has no references."""
    return _CITATION.sub("", answer)


def says_nothing(text: str) -> bool:
    """Tell whether a critique says that there is nothing to criticise."""
    return " ".join(re.findall(r"\w+", text.casefold())) in {"", "none", "nothing", "nothing is missing", "n a", "no"}
