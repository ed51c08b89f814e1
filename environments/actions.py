"""The one place where actions of the form Name[argument] are read."""

import re
from typing import NamedTuple

MAX_ARGUMENT = 1_000
"""Characters of an argument that are read; the rest is cut off."""

_START = re.compile(r"\s*(?:act(?:ion)?\s*\d*\s*:\s*)?([a-z]+)\s*\[", re.IGNORECASE)


class Action(NamedTuple):
    """An action of the form Name[argument]."""

    name: str
    """In lower case."""
    argument: str
    """On one line, without blanks at its ends; may be empty."""


def parse_action(text: str) -> Action | None:
    """Read an action such as `Search[Milhouse]`.

    Case, blanks and a label such as "Action 2:" do not matter. The argument ends at the bracket that closes the first
    one; if none does, at the last bracket there is. What follows is ignored, as in the published runs.

    Args:
        text: what the model wrote.

    Returns:
        The action, whatever its name; None if the text does not begin with one.
    """
    start = _START.match(text)
    if start is None:
        return None
    end = _closing(text, start.end())
    if end is None:
        return None
    return Action(start[1].lower(), " ".join(text[start.end() : end].split())[:MAX_ARGUMENT].strip())


def _closing(text: str, begin: int) -> int | None:
    """Return where the argument that begins at `begin` ends; None if no bracket follows."""
    depth = 1
    for bracket in re.finditer(r"[\[\]]", text[begin:]):
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            return begin + bracket.start()
    last = text.rfind("]", begin)
    return last if last >= 0 else None
