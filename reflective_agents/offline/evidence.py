"""What of a conversation the offline model may answer from, and the numbers by which it is cited."""

import json
import re
from collections.abc import Iterable, Iterator

from reflective_agents.offline.pieces import Piece, texts_of
from reflective_agents.text.extract import Passage, sentences
from reflective_agents.text.references import split_list
from reflective_agents.text.structure import Json

UNCITABLE = re.compile(r"(?<!\s)\s*+\[\d+\]")
"""Marks such as [3] in a source, which would pass for citations of ours."""
REMEMBERED = re.compile(r"m\d+")
"""Names of memories, by which they are cited."""
_REMARK = re.compile(r"not covered|.*offline extractive model", re.I)
_REFERENCE = re.compile(r"^[^\w\n]*+(\d++)[\].:]++\s++(?:[^\n]*, )?(\S+)", re.M)
_CITED = re.compile(r"\[(\d+)\]")


def results_of(pieces: Iterable[Piece]) -> list[dict[str, Json]]:
    """Return the search results among the observations; anything but a JSON array of results is not evidence."""
    results: list[dict[str, Json]] = []
    for text in texts_of(pieces, "observation"):
        results += [result for result in _json_array(text) if isinstance(result, dict)]
    return results


def found_in(results: Iterable[dict[str, Json]]) -> Iterator[Passage]:
    """Yield what search results say."""
    for result in results:
        content = result.get("content")
        if isinstance(content, str):
            title, url = str(result.get("title") or ""), str(result.get("url") or "")
            yield Passage(title, url, UNCITABLE.sub("", content))


def numbers_of(results: Iterable[dict[str, Json]]) -> dict[str, int]:
    """Return the numbers of search results by their URLs."""
    numbers = {}
    for result in results:
        number = result.get("number")
        if isinstance(number, int):
            numbers[str(result.get("url"))] = number
    return numbers


def listed_in(reports: Iterable[Piece]) -> dict[str, int]:
    """Return the numbers that reports list of their references, by URLs."""
    numbers: dict[str, int] = {}
    for report in reports:
        _, references = split_list(report.text)
        for number, url in _REFERENCE.findall(references):
            numbers[url] = int(number)
    return numbers


def reported_in(reports: Iterable[Piece]) -> Iterator[Passage]:
    """Yield the sentences of reports, each with the page that it cites; what a report says of itself is left out."""
    for report in reports:
        statements, listed = split_list(report.text)
        urls = dict(_REFERENCE.findall(listed))
        for sentence in sentences(statements):
            if not _REMARK.match(sentence):
                cited = _CITED.search(sentence)
                url = urls.get(cited[1], "") if cited else ""
                yield Passage("", url, UNCITABLE.sub("", sentence))


def remembered_in(pieces: Iterable[Piece]) -> Iterator[Passage]:
    """Yield the memories that an answer may cite by their names, such as m1."""
    for piece in pieces:
        if piece.kind == "memory" and REMEMBERED.fullmatch(piece.name):
            yield Passage("", piece.name, UNCITABLE.sub("", piece.text))


def _json_array(text: str) -> list[Json]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    value = value.get("results") if isinstance(value, dict) else value
    return value if isinstance(value, list) else []
