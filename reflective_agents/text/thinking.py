"""Thoughts that models put before their answers in tags: split off, also where they are not closed or cut off."""

import re

_OPEN = re.compile(r"\s*+<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking|thought|reasoning)>(?!`)", re.IGNORECASE)
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
    if not thoughts and (closed := _CLOSE.search(text)) and not re.search(r"<think", text[: closed.start()]):
        thoughts.append(text[: closed.start()].strip())
        text = text[closed.end() :]
    if inner := _BLOCK.search(text):
        closed = _CLOSE.search(text, inner.end())
        thoughts.append(text[inner.end() : closed.start() if closed else len(text)].strip())
        text = text[: inner.start()] + (text[closed.end() :] if closed else "")
    return (text.strip() if thoughts else text), "\n".join(thoughts)


class ThoughtFilter:
    """Splits a reply while it comes: holds text back as long as it may be a thought.

    `feed` and `end` return what may be shown.
    """

    def __init__(self) -> None:
        self._held, self._begun = "", False

    def feed(self, text: str) -> str:
        """Take the next piece."""
        if self._begun:
            return text
        self._held += text
        start = self._held.lstrip()
        if not start or "<thinking>".startswith(start[:10].casefold()) or _OPEN.match(start):
            return self._release() if _CLOSE.search(start) else ""
        return self._release()

    def end(self) -> str:
        """Take the end of the reply."""
        return "" if self._begun else self._release()

    def _release(self) -> str:
        visible, _ = split_thought(self._held)
        self._begun = bool(visible) or not _OPEN.match(self._held)
        self._held = "" if self._begun else self._held
        return visible
