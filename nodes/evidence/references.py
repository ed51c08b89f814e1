"""Citations across the answers of several workers: one numbering where they are read together, and each answer with a
list of its own where it stands alone."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

from reflective_agents.nodes.evidence.citations import (
    LARGEST,
    CheckedAnswer,
    citation,
    outside_code,
    reference_line,
    split_references,
    titles_in,
)

MARK = "s"
"""What stands before the numbers of others' sources, where a worker's own results have numbers too: [s1]."""
_CITED = re.compile(r"\s?[\[【](s?\d{1,4}(?:\s{0,3},\s{0,3}s?\d{1,4}){0,99})[\]】]", re.IGNORECASE)


def number_together(answers: Sequence[str], mark: str = "") -> tuple[list[str], list[str]]:
    """Bring answers under one numbering, so that [1] is the same source in all of them.

    Args:
        answers: Texts, each with a list of references of its own if it cites.
        mark: What stands before each number.

    Returns:
        The texts with their lists in the common numbers, and the addresses in that order.
    """
    urls: dict[str, int] = {}
    texts = []
    for answer in answers:
        body, listed = split_references(answer)
        common = {str(number): urls.setdefault(url, len(urls) + 1) for number, url in listed.items()}
        text = outside_code(_CITED, partial(_renumbered, common=common, mark=mark), body)
        titles = titles_in(answer)
        lines = dict.fromkeys(f"[{mark}{urls[url]}] {reference_line(url, titles)}" for url in listed.values())
        texts.append("\n".join([text, "", "References:", *lines]) if lines else body)
    return texts, [*urls]


def with_own_references(answer: str, sources: Sequence[str], *, searched: bool, prompt_text: str = "") -> CheckedAnswer:
    """Give the answer of a worker a list of references of its own, which holds what it cites of others' sources too.

    Args:
        answer: The text; [s1] cites the first of the sources, [1] the first of its own list.
        sources: The addresses of what others have found.
        searched: Whether the worker could look things up, and has had its own list checked. What another one lists
            has to be among the sources, or is removed and reported.
        prompt_text: What the worker was shown, in which the titles of the sources stand.
    """
    body, numbered = split_references(answer)
    listed = {str(number): url for number, url in numbered.items()}
    right = {f"{MARK}{number}": url for number, url in enumerate(sources, 1)}
    right |= {mark: url for mark, url in listed.items() if searched or url in sources}
    if not listed and not searched:
        right |= {str(number): url for number, url in enumerate(sources, 1)}
    wrong = {f"[{mark}] {url}": None for mark, url in listed.items() if mark not in right}
    order: dict[str, int] = {}

    def is_citation(mark: str) -> bool:
        by_number = mark.isdecimal() and not searched and bool(right) and 1 <= int(mark) <= LARGEST
        return mark in right or mark.startswith(MARK) or by_number or mark in listed

    def corrected(match: re.Match[str]) -> str:
        marks = _marks(match)
        if not any(map(is_citation, marks)):
            return match[0]  # a range, an index, a year
        wrong.update({f"[{mark}]": None for mark in marks if mark not in right and mark not in listed})
        return citation(match, dict.fromkeys(position(right[mark]) for mark in marks if mark in right))

    def position(url: str) -> str:
        return str(order.setdefault(url, len(order) + 1))

    text = outside_code(_CITED, corrected, body)
    urls = [*order] or [url for url in listed.values() if url in right.values()]  # what is only listed stays
    titles = titles_in(f"{prompt_text}\n{answer}")
    return CheckedAnswer(text.strip(), [*range(1, len(urls) + 1)], [*wrong], urls, titles)


def _renumbered(match: re.Match[str], common: Mapping[str, int], mark: str) -> str:
    numbers = _marks(match)
    if not all(number in common for number in numbers):
        return match[0]
    return citation(match, dict.fromkeys(f"{mark}{common[number]}" for number in numbers))


def _marks(match: re.Match[str]) -> list[str]:
    return [mark.strip().casefold() for mark in match[1].split(",")]
