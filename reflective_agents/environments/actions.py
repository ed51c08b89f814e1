"""Reads actions of the form Name[argument], and answers at the end of a text."""

import re
from typing import NamedTuple

from reflective_agents.text.labels import NAMES, answer_in, bare, label_of, without_answer_label

MAX_ARGUMENT = 1_000
"""Characters of an argument that are read; the rest is cut off."""

_START = re.compile(r"\s*+(?:act(?:ion)?\s*+\d*+\s*+:\s*+)?([a-z]++)\s*+\[", re.IGNORECASE)


class Action(NamedTuple):
    """An action of the form Name[argument]."""

    name: str
    """In lower case."""
    argument: str
    """On one line, stripped; may be empty."""


def parse_action(text: str) -> Action | None:
    """Read an action such as `Search[Milhouse]`.

    Case, blanks and a label such as "Action 2:" do not matter. The argument ends at the bracket that closes the first
    one; if none does, at the last bracket there is. What follows is ignored, as in the published runs.

    Args:
        text: The text of a model.

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


_EXPRESSION = re.compile(r"[^\w\s]{0,3}\d")
_FINISH = re.compile(r"finish\s*\[", re.IGNORECASE)


def find_answer(text: str) -> str:
    """Find the answer that a text ends with: after `Finish[`, else after the last `Answer:`, else the last line.

    Stars and backticks around it are left out.
    """
    finishes = list(_FINISH.finditer(text))
    if finishes:
        action = parse_action(text[finishes[-1].start() :])
        return action.argument if action else ""
    named = answer_in(text)
    if named is not None:
        return named
    lines = text.strip().splitlines()
    return bare(lines[-1]) if lines else ""


def answer_action(action: str) -> str | None:
    """Return the answer of an action such as `Answer: 4`, `Finish[4]` or `The answer is 4`, empty where only its label
    stands there; None if it gives none."""
    text = action.strip()
    if text.casefold() in (*NAMES["final"], *NAMES["answer"]):
        return ""
    if _FINISH.match(text) and (finish := parse_action(text)):
        return finish.argument
    label = label_of(text.partition("\n")[0], ("final", "answer"))
    if label:
        return bare(text[label[1] :]).strip("*_` \t\r\n")
    # "The answer is 4" is one; "The answer is in the article on Rome" is a thought, and has no number.
    stated = without_answer_label(text)
    if stated == text or not _EXPRESSION.match(stated):
        return None
    return bare(stated).strip("*_`")


def has_answer(text: str) -> bool:
    """Return whether a text marks its answer, by `Finish[` or a label such as `Answer:`."""
    return bool(_FINISH.search(text)) or answer_in(text) is not None
