"""The citations of a text, changed or read: all other brackets stay as they are, character by character."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from reflective_agents.text.brackets import Mark, marks
from reflective_agents.text.sentences import is_heading, prose_spans


class CitedSentence(NamedTuple):
    """A sentence of an answer.

    Attributes:
        text: The sentence without its marks.
        numbers: The sources that it cites, each once, in the order of its marks.
        begin: Where it begins in the answer.
        end: Where it ends there, after its marks.
    """

    text: str
    numbers: tuple[int, ...]
    begin: int
    end: int


def is_citation(mark: Mark, known: Collection[str]) -> bool:
    """Tell whether a mark cites where sources of these names were shown: for certain, or because it names only them.

    Names with a letter that none of the sources has are no names of sources.
    """
    if all(name in known for name in mark.names):
        return True
    letters = {*map(_letter, known)}
    return mark.certain and letters.issuperset(map(_letter, mark.names))


def _letter(name: str) -> str:
    """Return the letter before the number of a source; empty if there is none."""
    return name[0] if name[0].isalpha() else ""


def replace_citations(
    text: str,
    known: Collection[str],
    change: Callable[[Sequence[str]], Iterable[str]],
    among: Sequence[Mark] | None = None,
) -> str:
    """Change the names in the citations of a text.

    Args:
        text: Any text.
        known: The names of the sources that were shown; where there are none, nothing cites.
        change: Returns the names that a citation gets in place of those it has; without any it is taken out.
        among: The marks of the text, if they were read before.
    """
    parts, done, blank = list[str](), 0, ""
    for mark in marks(text) if among is None else among:
        names = (*change(mark.names),) if is_citation(mark, known) else mark.names
        # The blank before a mark goes with it, unless another mark follows at once: then it stands before that one.
        blank = blank if mark.begin == done else ""
        begin = mark.begin if names or blank else _blank_before(text, mark.begin, done)
        if names:
            is_same = names == mark.names
            parts += [blank, text[done:begin], text[mark.begin : mark.end] if is_same else f"[{', '.join(names)}]"]
            blank = ""
        else:
            parts.append(text[done:begin])
            blank = blank or text[begin : mark.begin]
        done = mark.end
    return "".join([*parts, text[done:]])


def without_unknown(text: str, known: Collection[int]) -> str:
    """Take out what can only be a citation, but for those of sources that are known: it could be taken for one of what
    is shown later."""
    names = {"0", *map(str, known)}  # no source has the number 0, and even where none is known numbers are meant

    def keep_known(cited: Sequence[str]) -> list[str]:
        return [name for name in cited if name in names]

    return replace_citations(text, names, keep_known)


def _blank_before(text: str, begin: int, first: int = 0) -> int:
    """Return where the blank begins that is taken out with a mark, unless another one follows at once."""
    return begin - 1 if begin > first and text[begin - 1] in " \t\u00a0" else begin


def cited_sentences(answer: str, known: Collection[int], letter: str = "") -> list[CitedSentence]:
    """Return the sentences of an answer, each with the sources that it cites. Code and formulas are none, nor is a
    heading that cites nothing.

    Args:
        answer: The text, without a list of references.
        known: The numbers of the sources that were shown.
        letter: What stands before the numbers in the marks, as in [m1].
    """
    names = {f"{letter}{number}": number for number in known}
    citing = [mark for mark in marks(answer) if is_citation(mark, names)]
    blanked = list(answer)
    for mark in citing:
        blanked[mark.begin : mark.end] = " " * (mark.end - mark.begin)
    sentences: list[CitedSentence] = []
    rest = deque(citing)
    for begin, end in prose_spans("".join(blanked)):
        inside: list[Mark] = []
        numbers: dict[int, None] = {}
        while rest and rest[0].begin < end:
            mark = rest.popleft()
            if mark.begin >= begin:  # code is no sentence
                inside.append(mark)
                numbers.update((names[name], None) for name in mark.names if name in names)
        if not numbers and is_heading(answer[begin:end]):
            continue
        sentences.append(CitedSentence(_without(answer, begin, end, inside), (*numbers,), begin, end))
    return sentences


def _without(text: str, begin: int, end: int, among: Sequence[Mark]) -> str:
    parts = list[str]()
    for mark in among:
        parts.append(text[begin : max(begin, _blank_before(text, mark.begin))])
        begin = mark.end
    return " ".join("".join([*parts, text[begin:end]]).split())
