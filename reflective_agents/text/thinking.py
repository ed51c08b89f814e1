"""Thoughts that models put before their answers in tags: split off, also where they are not closed or cut off."""

import re

_TAGS = ("think", "thinking", "thought", "reasoning")
_OPEN = re.compile(rf"\s*+<(?:{'|'.join(_TAGS)})>", re.IGNORECASE)
# Not before a backtick: an answer may speak of the tag, as code.
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
    # Servers whose chat template has written the opening tag return only what comes after it.
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

    Args:
        most: Most characters of thoughts that are kept, about.
    """

    def __init__(self, most: int = 200_000) -> None:
        self._left = most
        self._thoughts: list[str] = []
        self._open: list[str] | None = None
        """The pieces of a thought that is not closed yet; None outside of thoughts."""
        self._blanks: list[str] = []
        self._held, self._begun = "", False

    @property
    def thought(self) -> str:
        """What the model has thought so far, as far as it is closed."""
        return "\n".join(self._thoughts)

    def feed(self, text: str) -> str:
        """Take the next piece."""
        if self._begun:
            return text
        self._held += text
        return self._release(ended=False)

    def end(self) -> str:
        """Take the end of the reply; a thought that is not closed goes on to here."""
        shown = "" if self._begun else self._release(ended=True)
        if self._open is not None:
            self._close(self._held)
        return shown

    def _release(self, *, ended: bool) -> str:
        """Take the thoughts out that are whole, and return what follows them, once it can be no further one."""
        while self._enter():
            closed = _CLOSE.search(self._held)
            if closed is None or (closed.end() == len(self._held) and not ended):  # a backtick may follow
                self._set_aside()
                return ""
            rest = self._held[closed.end() :]
            self._close(self._held[: closed.start()])
            self._held = rest
        # The beginning of a tag: what follows decides.
        if not ended and any(f"<{tag}>".startswith(self._held.casefold()) for tag in _TAGS):
            return ""
        shown = self._held if self._thoughts else "".join([*self._blanks, self._held])
        self._held, self._begun = "", True
        return shown

    def _enter(self) -> bool:
        """Tell whether what is held is thought, after its tag is taken off, and the blanks before that."""
        if self._open is not None:
            return True
        start = self._held.lstrip()
        self._blanks.append(self._held[: len(self._held) - len(start)])
        opened = _OPEN.match(start)
        self._held = start[opened.end() :] if opened else start
        self._open = [] if opened else None
        return opened is not None

    def _set_aside(self) -> None:
        """Hold no more of a thought than its end tag may begin in: all of it would be copied with each piece."""
        assert self._open is not None
        aside = max(len(self._held) - _LONGEST_CLOSE, 0)
        self._open.append(self._held[: min(aside, self._left)])
        self._left -= len(self._open[-1])
        self._held = self._held[aside:]

    def _close(self, end: str) -> None:
        self._thoughts.append("".join([*(self._open or ()), end[: self._left]]).strip())
        self._left = max(self._left - len(end), 0)
        self._open, self._held = None, ""
