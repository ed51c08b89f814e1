"""Citations checked by code: each names a source that was shown, and the list of references is built of them."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from reflective_agents.nodes.evidence.marks import is_citation, replace_citations
from reflective_agents.nodes.evidence.reference_list import ENDS, reference_line, split_references, with_list
from reflective_agents.nodes.evidence.sources import Source, Sources, sources_of, thread_sources
from reflective_agents.prompts import search as prompts
from reflective_agents.text.brackets import marks

_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*+`)", re.DOTALL)
_ADDRESS = re.compile(r"https?://[^\s<>\"'`)\]}]+")


class CheckedAnswer(NamedTuple):
    """An answer whose citations were checked.

    Attributes:
        body: The answer with citations of sources only, and without a list.
        cited: The sources that it cites, by the numbers that they have in it.
        wrong: What it refers to that was never found, as it names it.
        sources: All that it could cite.
    """

    body: str
    cited: Sources
    wrong: list[str]
    sources: Sources

    @property
    def text(self) -> str:
        """The answer followed by its references."""
        return with_references(self.body, self.cited)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the sources that it cites."""
        return [*self.cited]

    @property
    def references(self) -> list[str]:
        """The addresses of the sources that it cites."""
        return [source.url for source in self.cited.values()]

    @property
    def facts(self) -> str:
        """What was checked, for those who judge the answer."""
        if self.wrong:
            return prompts.NOT_FOUND.format(names=", ".join(self.wrong))
        if self.cited:
            return prompts.ALL_FOUND
        return prompts.NONE_CITED.format(count=len(self.sources)) if self.sources else ""


def with_references(body: str, cited: Sources) -> str:
    """Return an answer with the list of what it cites."""
    lines = [f"[{number}] {reference_line(source.url, source.title)}" for number, source in cited.items()]
    return with_list(body, lines) if lines else body


def resolve_citations(
    answer: str, observations: Sequence[str], conversation: Sequence[BaseMessage] = (), *, streamed: bool = False
) -> CheckedAnswer:
    """Check the citations of an answer: those that name nothing that was found are taken out and reported.

    Args:
        answer: Text with citations such as [1] or [2, 3].
        observations: What tools have answered, in order.
        conversation: The messages before the answer: it may cite what earlier answers cite, and name any address.
        streamed: Whether the answer was read by a `CitationReader`, so that its text stands.
    """
    sources = sources_of(observations, thread_sources(conversation))
    material = "\n".join([*observations, *(message.text for message in conversation)])
    return resolve(answer, sources, material, streamed=streamed)


def resolve(answer: str, sources: Sources, material: str, *, streamed: bool = False) -> CheckedAnswer:
    """Check the citations of an answer, as `resolve_citations` does.

    Numbers are those of the sources. If the answer brings a list of its own, the addresses in it count; a text that was
    streamed keeps its numbers all the same, and only their references follow the list.

    Args:
        answer: Text with citations.
        sources: What was shown.
        material: Text that has to hold all other addresses that the answer names.
        streamed: Whether the text stands.
    """
    body, listed = split_references(answer)
    check = _Check(sources, listed, streamed)
    text = check.citations(body)
    wrong = [*check.wrong, *_unknown_addresses(body, material)]
    return CheckedAnswer(text, dict(sorted(check.cited.items())), [*dict.fromkeys(wrong)], sources)


class _Check:
    """The check of one answer; `cited` and `wrong` fill as it reads."""

    def __init__(self, sources: Sources, listed: dict[int, str], streamed: bool) -> None:
        self.sources, self.listed, self.streamed = sources, listed, streamed
        self.numbers = {source.url: number for number, source in sources.items()}
        self.cited: dict[int, Source] = {}
        self.wrong: list[str] = []

    def citations(self, body: str) -> str:
        """Return the text with citations of sources only."""
        among = marks(body)
        known = {*map(str, self.sources)}
        if not self.streamed:
            known.update(map(str, self.listed))
        if not any(is_citation(mark, known) for mark in among):
            self.correct(map(str, self.listed))  # what is only listed is referred to as well
        return replace_citations(body, known, self.correct, among)

    def correct(self, names: Iterable[str]) -> list[str]:
        """Return the numbers of the sources that a citation names, and note them."""
        corrected: dict[str, None] = {}
        for name in names:
            number = self._resolve(name)
            if number is not None:
                corrected[str(number)] = None
        return list(corrected)

    def _resolve(self, name: str) -> int | None:
        number = int(name) if name.isdecimal() else 0
        address = self.listed.get(number)
        source = self.sources.get(number if address is None else self.numbers.get(address, 0))
        stands = self.streamed and number in self.sources
        if source is None:
            self.wrong.append(f"[{name}] {address or ''}".strip())
        else:
            self.cited[number if stands else source.number] = source
        if stands:
            return number
        return source.number if source and not self.streamed else None


def _unknown_addresses(text: str, material: str) -> list[str]:
    # Every second part is code, in which any address may be an example.
    prose = " ".join(_CODE.split(text)[::2])
    named = [url.rstrip(ENDS) for url in _ADDRESS.findall(prose)]
    return [url for url in named if url not in material]


def says_nothing(text: str) -> bool:
    """Tell whether a critique says that there is nothing to criticise."""
    words = " ".join(re.findall(r"\w+", text.casefold()))
    # "n a" is what is left of "N/A".
    return words in {"", "none", "nothing", "nothing is missing", "n a", "no"}
