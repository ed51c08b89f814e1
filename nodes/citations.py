"""Citations checked by code: every [n] has its reference, every reference is a page that a search has returned."""

import re
from collections.abc import Collection, Sequence

_CITATION = re.compile(r"\s?\[(\d+(?:\s*,\s*\d+)*)\]")
_LIST = re.compile(r"\n+\s*(?:#+\s*|\**)?references?:?\**:?\s*\n.*\Z", re.IGNORECASE | re.DOTALL)
_NUMBERING = re.compile(r"^\s*\[?\d+[\].):]\s*")


def check_citations(answer: str, references: Sequence[str], known: Collection[str]) -> str | None:
    """What is wrong with an answer's citations, in words for the model; None if nothing is.

    Args:
        answer: Text with citations such as [1] or [1, 2].
        references: URLs; the first is [1].
        known: The URLs that searches of this run have returned.
    """
    unknown = [url for url in references if url not in known]
    beyond = sorted(n for n in cited(answer) if not 1 <= n <= len(references))
    problems = []
    if unknown:
        problems.append(
            f"references that no search has returned: {', '.join(unknown)}; use only URLs of the search results"
        )
    if beyond:
        numbers = ", ".join(f"[{n}]" for n in beyond)
        problems.append(f"citations without a reference: {numbers}; there are {len(references)} references")
    return "; ".join(problems) or None


def cited(answer: str) -> set[int]:
    """The numbers that an answer cites."""
    return {int(number) for match in _CITATION.finditer(answer) for number in match[1].split(",")}


def plain_urls(references: Sequence[str]) -> list[str]:
    """References without the numbering that models like to put before them."""
    return [_NUMBERING.sub("", reference).strip() for reference in references]


def uncited(answer: str) -> str:
    """An answer without its citations, for one that has no references."""
    return _CITATION.sub("", answer)


def render(answer: str, references: Sequence[str]) -> str:
    """The answer as text, followed by its numbered references."""
    body = _LIST.sub("", answer).strip()
    lines = [f"[{number}] {url}" for number, url in enumerate(references, 1)]
    return "\n".join([body, "", "References:", *lines]) if lines else body


def nothing(text: str) -> bool:
    """Whether a critique says that there is nothing to say."""
    return " ".join(re.findall(r"\w+", text.casefold())) in {"", "none", "nothing", "nothing is missing", "n a", "no"}
