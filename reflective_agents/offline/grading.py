"""How the offline model grades: by coverage of the request, support by the evidence, and citation."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reflective_agents.offline.reading import Reading
from reflective_agents.offline.writing import body, coverage
from reflective_agents.text.extract import Passage, terms

ACCEPTED = 0.7
"""Score from which an answer is accepted, if it also covers every rare term of the request."""
COMMON = 0.5
"""Share of the passages in which a term must stand to be common; every other term is rare."""
UNFINISHED = 0.4
"""Score of a trajectory without an answer whose evidence covers the request."""
SUPPORTED = 0.6
"""Share of a sentence's terms that one sentence of the evidence must hold to support it."""

_CITATION = re.compile(r"(?<!\s)\s*+\[(s?\d+)\]")
_REFERENCE = re.compile(r"^[^\w\n]*+(s?\d++)[\].:]++\s++(?:[^\n]*, )?(\S+)", re.M)


@dataclass(frozen=True)
class Grade:
    """What was measured of an answer, each part from 0 to 1."""

    answered: bool
    coverage: float
    support: float
    citation: float | None
    """None when the evidence has no URLs to cite."""
    missing: tuple[str, ...]
    """The words of the request that the answer does not cover."""
    rare: tuple[str, ...] = ()
    """Those of them that are rare in the evidence, or do not stand there at all."""

    @property
    def score(self) -> float:
        """The mean of the parts, 0..1; without an answer, what the evidence found so far is worth."""
        if not self.answered:
            return round(UNFINISHED * self.coverage, 3)
        parts = [part for part in (self.coverage, self.support, self.citation) if part is not None]
        return round(sum(parts) / len(parts), 3)

    @property
    def accepted(self) -> bool:
        """Whether there is an answer good enough to be handed on."""
        return self.answered and self.score >= ACCEPTED and not self.rare

    @property
    def not_covered(self) -> str:
        """The words of the request that are missing, as a sentence; empty if there are none."""
        return f"Not covered: {', '.join(self.missing)}." if self.missing else ""

    def __str__(self) -> str:
        """Write the critique: what was measured and what to do about it."""
        if not self.answered:
            parts = [
                "No answer yet.",
                f"The evidence covers {self.coverage:.0%} of the request's terms.",
                self.not_covered,
            ]
        else:
            cited = "" if self.citation is None else f", citation {self.citation:.0%}"
            parts = [f"Coverage {self.coverage:.0%}, support {self.support:.0%}{cited}.", self.not_covered]
            if self.support < 1:
                parts.append("Some sentences are not supported by the evidence.")
            if self.citation is not None and self.citation < 1:
                parts.append("Cite a source that was found for each sentence.")
        return " ".join(part for part in parts if part)


def grade(reading: Reading, answer: str) -> Grade:
    """Measure an answer against the request and the evidence of a conversation.

    Args:
        reading: the conversation.
        answer: the answer with its citations and references; empty if there is none yet.
    """
    if not answer.strip():
        missing = tuple(reading.missing(reading.evidence_stems))
        return Grade(False, coverage(reading) if reading.passages else 0.0, 0, 0, missing)
    statements = list(body(answer))
    stems = set(terms(" ".join(statements)))
    missing = tuple(reading.missing(stems))
    covered = 1 - len(missing) / len(reading.terms) if reading.terms else float(bool(statements))
    cited = _cited(reading, answer, statements)
    support = cited
    if reading.sentences:
        supported = [sentence for sentence in statements if _supported(reading, sentence)]
        support = len(supported) / max(len(statements), 1)
    citable = reading.citable or bool(_REFERENCE.search(answer))
    return Grade(True, covered, support, cited if citable else None, missing, tuple(_rare(reading, missing)))


def _rare(reading: Reading, words: Iterable[str]) -> Iterator[str]:
    """Yield the words that stand in no more than a share of the passages."""
    stems_of: dict[Passage, set[str]] = {}
    for sentence in reading.sentences:
        stems_of.setdefault(sentence.passage, set()).update(sentence.stems)
    for word in words:
        forms = set(terms(word))
        holding = [stems for stems in stems_of.values() if stems & forms]
        if len(holding) <= COMMON * len(stems_of):
            yield word


def _cited(reading: Reading, answer: str, statements: list[str]) -> float:
    """Return the share of sentences whose citations all resolve, to pages that were found where any were shown."""
    listed = dict(_REFERENCE.findall(answer))
    shown = {passage.url for passage in reading.passages if passage.url}
    good = {number for number, url in listed.items() if not shown or url in shown}
    marks = [set(_CITATION.findall(sentence)) for sentence in statements]
    right = [numbers for numbers in marks if numbers and numbers <= good]
    return len(right) / max(len(marks), 1)


def _supported(reading: Reading, sentence: str) -> bool:
    stems = set(terms(_CITATION.sub("", sentence)))
    if not stems:
        return False
    needed = SUPPORTED * len(stems)
    return any(len(stems & source.stems) >= needed for source in reading.sentences)
