"""Citations across the answers of several workers: one numbering where they are read together, and each answer with a
list of its own where it stands alone."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

from reflective_agents.nodes.evidence.citations import LARGEST, Settled, entry, outside_code, split_list, titles_in

MARK = "s"
"""What stands before the numbers of others' sources, where a worker's own results have numbers too: [s1]."""
_CITED = re.compile(r"\s?[\[【](s?\d{1,4}(?:\s{0,3},\s{0,3}s?\d{1,4}){0,99})[\]】]", re.IGNORECASE)


def together(answers: Sequence[str], mark: str = "") -> tuple[list[str], list[str]]:
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
        body, own = split_list(answer)
        common = {str(number): urls.setdefault(url, len(urls) + 1) for number, url in own.items()}
        said = outside_code(_CITED, partial(_renumbered, common=common, mark=mark), body)
        named = titles_in(answer)
        listed = dict.fromkeys(f"[{mark}{common[str(number)]}] {entry(url, named)}" for number, url in own.items())
        texts.append("\n".join([said, "", "References:", *listed]) if listed else body)
    return texts, [*urls]


def on_its_own(answer: str, sources: Sequence[str], *, searched: bool, told: str = "") -> Settled:
    """Give the answer of a worker a list of references of its own, which holds what it cites of others' sources too.

    Args:
        answer: The text; [s1] cites the first of the sources, [1] the first of its own list.
        sources: The addresses of what others have found.
        searched: Whether the worker could look things up, and has had its own list checked. What another one lists
            has to be among the sources, or is removed and reported.
        told: What the worker was shown, in which the titles of the sources stand.
    """
    body, own = split_list(answer)
    right = {f"{MARK}{number}": url for number, url in enumerate(sources, 1)}
    right |= {str(number): url for number, url in own.items() if searched or url in sources}
    if not own and not searched:
        right |= {str(number): url for number, url in enumerate(sources, 1)}
    wrong = {f"[{number}] {url}": None for number, url in own.items() if str(number) not in right}
    order: dict[str, int] = {}

    def meant(one: str) -> bool:
        by_number = one.isdecimal() and not searched and bool(right) and 1 <= int(one) <= LARGEST
        return one in right or one.startswith(MARK) or by_number or one in map(str, own)

    def cited(match: re.Match[str]) -> str:
        said = _numbers(match)
        if not any(map(meant, said)):
            return match[0]  # a range, an index, a year
        wrong.update(
            {f"[{one}]": None for one in said if one not in right and not (one.isdecimal() and int(one) in own)}
        )
        kept = dict.fromkeys(str(order.setdefault(right[one], len(order) + 1)) for one in said if one in right)
        return f"{_lead(match)}[{', '.join(kept)}]" if kept else ""

    text = outside_code(_CITED, cited, body)
    urls = [*order] or [url for url in own.values() if url in right.values()]  # what is only listed stays
    return Settled(text.strip(), [*range(1, len(urls) + 1)], [*wrong], urls, titles_in(f"{told}\n{answer}"))


def _renumbered(match: re.Match[str], common: Mapping[str, int], mark: str) -> str:
    said = _numbers(match)
    if not all(one in common for one in said):
        return match[0]
    shown = dict.fromkeys(f"{mark}{common[one]}" for one in said)
    return f"{_lead(match)}[{', '.join(shown)}]"


def _numbers(match: re.Match[str]) -> list[str]:
    return [one.strip().casefold() for one in match[1].split(",")]


def _lead(match: re.Match[str]) -> str:
    return match[0][: len(match[0]) - len(match[0].lstrip())]
