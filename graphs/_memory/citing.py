"""Citations of memories in answers: `[m1]`, or `[m1, m3]`, also in brackets of full width: `【m1】`."""

import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage

LONGEST_CITATION = 200
"""Characters between the brackets of a citation."""
_OPENING, _CLOSING = "[【［", "]】］"
# With the small letter that the model was shown: an M3 is a screw.
_CITATION = re.compile(rf"(\s?)[\{_OPENING}]\s*m(\d+(?:\s*[,;，、；]\s*m?\d+)*)\s*[\{_CLOSING}]")


def cited(text: str) -> set[int]:
    """Return the numbers of the memories that a text cites."""
    numbers = set[int]()
    for citation in _CITATION.finditer(text):
        numbers.update(_numbers_in(citation))
    return numbers


def _numbers_in(citation: re.Match[str]) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", citation[2])]


def uncited(text: str) -> str:
    """Remove citations of memories from a text: they mean something only beside the memories of their turn."""
    return _CITATION.sub("", text)


def only_cited(text: str, count: int) -> str:
    """Keep only the citations of memories 1 to `count`, all written as in [m1, m3], and remove whatever else looks like
    a citation. Where no memory was shown, nothing cites."""

    def checked(match: re.Match[str]) -> str:
        names = [f"m{number}" for number in _numbers_in(match) if 1 <= number <= count]
        return f"{match[1]}[{', '.join(names)}]" if names else ""

    return _CITATION.sub(checked, text) if count else text


def shown(answer: str, count: int) -> str:
    """Return an answer as it is read: without the marks of the memories, if it was given any."""
    return uncited(answer) if count else answer


class Citing:
    """Reads an answer while it comes, and leaves out its citations. `count` is how many memories it was shown."""

    def __init__(self, count: int) -> None:
        self._count, self._held = count, ""

    def feed(self, text: str) -> str:
        """Return what stands before a citation that has not ended yet."""
        self._held += text
        ready = self._held
        # What is longer is no citation, and need not be held back.
        begun = max(ready.rfind(bracket, -LONGEST_CITATION) for bracket in _OPENING)
        if begun >= 0 and not any(bracket in ready[begun:] for bracket in _CLOSING):
            ready = ready[:begun]
        # Blanks go with a citation that follows.
        ready = ready.rstrip()
        self._held = self._held[len(ready) :]
        return shown(ready, self._count)


def without_memory_marks(conversation: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Remove the citations of memories from the earlier answers of a conversation."""
    return [_without_marks(message) for message in conversation]


def _without_marks(message: AnyMessage) -> AnyMessage:
    if isinstance(message, AIMessage) and isinstance(message.content, str):
        return message.model_copy(update={"content": uncited(message.content)})
    return message
