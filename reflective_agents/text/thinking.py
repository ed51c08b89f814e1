"""Thoughts that models put before their answers in tags: split off, also where they are not closed or cut off."""

import re

_TAGS = ("think", "thinking", "thought", "reasoning")
_OPEN = re.compile(rf"\s*+<(?:{'|'.join(_TAGS)})>", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{'|'.join(_TAGS)})>(?!`)", re.IGNORECASE)
_LONGEST_CLOSE = max(len(f"</{tag}>") for tag in _TAGS)
_ANY_OPEN = re.compile(rf"<(?:{'|'.join(_TAGS)})", re.IGNORECASE)
_BLOCK = re.compile(r"(?:^|(?<=\n))[ \t]*<(?:think|thinking)>\s", re.IGNORECASE)


def split_thought(text: str) -> tuple[str, str]:
    """Split what a model thought from what it says.

    A thought that is not closed goes on to the end. What stands before an end tag that was never opened is thought,
    for some servers swallow the first tag.

    Args:
        text: A reply.

    Returns:
        What is said, and what was thought; empty if it did not think.
    """
    if "<" not in text:
        return text, ""
    thoughts: list[str] = []
    while opened := _OPEN.match(text):
        closed = _CLOSE.search(text, opened.end())
        if closed is None:
            return "", "\n".join([*thoughts, text[opened.end() :].strip()])
        thoughts.append(text[opened.end() : closed.start()].strip())
        text = text[closed.end() :]
    if not thoughts and (closed := _CLOSE.search(text)) and not _ANY_OPEN.search(text, 0, closed.start()):
        thoughts.append(text[: closed.start()].strip())
        text = text[closed.end() :]
    if inner := _BLOCK.search(text):
        closed = _CLOSE.search(text, inner.end())
        thoughts.append(text[inner.end() : closed.start() if closed else len(text)].strip())
        text = text[: inner.start()] + (text[closed.end() :] if closed else "")
    return (text.strip() if thoughts else text), "\n".join(thoughts)


class ThoughtFilter:
    """Splits a reply while it comes: what it shows is what `split_thought` takes for the answer, however it is cut.

    Only thoughts at the beginning are held back: of others nobody knows in time. `feed` and `end` return what may be
    shown.
    """

    def __init__(self) -> None:
        self._thoughts: list[str] = []
        self._held, self._begun = "", False
        self._searched = 0
        """Where in the text held the end of the thought is looked for: all before was searched."""

    @property
    def thought(self) -> str:
        """What the model has thought so far, as far as it is closed."""
        return "\n".join(self._thoughts)

    def feed(self, text: str) -> str:
        """Take the next piece."""
        if self._begun and not self._held:
            return text
        self._held += text
        return self._release(ended=False)

    def end(self) -> str:
        """Take the end of the reply; a thought that is not closed goes on to here."""
        shown = self._release(ended=True)
        if not self._begun and (opened := _OPEN.match(self._held)):
            self._keep(self._held[opened.end() :])
            return ""
        return shown

    def _release(self, *, ended: bool) -> str:
        """Take the thoughts out that are whole, and return what follows them, once it can be no further one."""
        while opened := _OPEN.match(self._held):
            closed = _CLOSE.search(self._held, max(self._searched, opened.end()))
            if closed is None or (closed.end() == len(self._held) and not ended):  # a backtick may follow
                self._searched = max(len(self._held) - _LONGEST_CLOSE, 0)
                return ""
            self._keep(self._held[opened.end() : closed.start()])
            self._held, self._searched = self._held[closed.end() :], 0
        start = self._held.lstrip()
        if not ended and (not start or any(f"<{tag}>".startswith(start.casefold()) for tag in _TAGS)):
            return ""
        shown, self._held, self._begun = start if self._thoughts else self._held, "", True
        return shown

    def _keep(self, thought: str) -> None:
        self._thoughts.append(thought.strip())
