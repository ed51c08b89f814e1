"""Reads calculations as models write them: `calculate: 8 (filling rate) - 2 (leaking rate) = 6 litres per minute`."""

import re
from typing import NamedTuple

from langchain_core.tools import ToolException

from reflective_agents.text.labels import any_of, bare
from reflective_agents.text.normal import tidy
from reflective_agents.tools.arithmetic import evaluate

MAX_CHARACTERS = 1_000
"""Characters of a calculation that are read."""

_LABEL = re.compile(
    rf"[^:：\n]{{0,60}}?(?<!\w)(?:{any_of('calculate')})(?!\w)(?:[^:：\n=+*/()\d]{{0,80}}[:：]|(?=\s*[(\[\d$-]))",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SIGNS = str.maketrans({"\N{MINUS SIGN}": "-", **dict.fromkeys("$\N{EURO SIGN}\N{POUND SIGN}\N{YEN SIGN}")})
_LATEX = re.compile(r"\\(times|cdot|div|[()\[\]])")
_LATEX_SIGNS = {"times": "*", "cdot": "*", "div": "/"}
_PER_CENT = re.compile(r"(?<=\d)\s*+per ?cent\b", re.IGNORECASE)
_TIMES = re.compile(r"(?<=[\d)%])\s*+(?:[xX](?=\s*+[\d(])|(?<=\s)of(?=\s++[\d(]))")
_SHARE = re.compile(r"(?<!\d)(\d++(?:\.\d++)?+)\s*+%(?!\s*+[\d(])")
_UNIT = (
    r"(?!(?:dozen|hundred|thousand|million|billion)s?\b)(?:[^\W\d_]{2,}+(?:/[^\W\d_]++)?+|[^\W\d_]/[^\W\d_]++)(?!\w)"
)
_NOTE = r"\((?=[^()]*?[^\W\d_]{2})[^()=+*/]*+\)"
_ASIDES = re.compile(rf"(?<=[\d)])(?:\s*+(?:{_UNIT}|{_NOTE}))++", re.IGNORECASE)
_WORDS = re.compile(r"(?:[^\W\d_]++['’,:]?+\s++)++(?=[\d(])")
_WORD = re.compile(r"[^\W\d_]++(?:['’][^\W\d_]++)?+")
_OPERATION = re.compile(r"[\d)][^-+*/\d)]*+[-+*/\N{MULTIPLICATION SIGN}\N{DIVISION SIGN}]")


class Calculation(NamedTuple):
    """A calculation, as an expression without its result; `why` says why it cannot be worked out, if it cannot."""

    expression: str
    why: str = ""


def read_calculation(action: str) -> Calculation | None:
    """Read a calculation, with or without its label.

    Units and notes in parentheses behind a number do not count. Of an equation the first side counts that can be worked
    out and holds an operation: "rate = 8 - 2 = 6" is 8 - 2. A word that is no unit of a number is an unknown.

    Returns:
        The calculation; None if a text has neither the label nor an operation that can be worked out.
    """
    text = action[:MAX_CHARACTERS]
    label = _LABEL.match(text)
    rest = text[label.end() :] if label else text
    lines = [line for line in map(_undressed, rest.splitlines()) if line]
    line = lines[0] if lines else ""
    sides = [_read(side) for side in line.split("=")]
    if label and not sides[0].why:
        return sides[0]
    for side in sides:
        if _OPERATION.search(side.expression) and not side.why:
            return side
    return _in_sentence(line) or (sides[0] if label else None)


def _in_sentence(line: str) -> Calculation | None:
    """Read the calculation in a sentence such as "There are 30 - 12 = 18 girls", if its result is right: that of
    "Twice 12 - 4 = 20" is not, so something else was meant."""
    before, _, after = line.partition("=")
    begin = _WORDS.match(before)
    calculation = _read(before[begin.end() :] if begin else "")
    result = _read(after.partition("=")[0])
    if calculation.why or result.why or evaluate(calculation.expression) != evaluate(result.expression):
        return None
    return calculation


def _plain(text: str) -> str:
    """Return an expression without units and notes, signs of currency and commas between thousands."""
    return _ASIDES.sub("", _with_signs(text)).strip(" .,;:").rstrip("]}")


def without_signs(text: str) -> str:
    """Return a text without signs of currency, and without commas between thousands."""
    return _THOUSANDS.sub("", tidy(text).translate(_SIGNS))


def _undressed(line: str) -> str:
    """Return a line without decoration, and without brackets around the whole of it: `calculate[8 - 2]`."""
    line = bare(line).strip("'\"")
    return line[1:-1] if line.startswith("[") and line.endswith("]") else line


def _with_signs(text: str) -> str:
    """Write what stands for an operation as its sign: "25% of 80" as (25 / 100) * 80, "6 x 8" as 6 * 8."""
    text = _LATEX.sub(lambda match: _LATEX_SIGNS.get(match[1], ""), without_signs(text))
    text = _PER_CENT.sub("%", text)
    text = _TIMES.sub(" *", text)
    text = _SHARE.sub(r"(\1 / 100)", text)
    return " ".join(text.split())


def _read(side: str) -> Calculation:
    expression = _plain(side)
    try:
        evaluate(expression)
    except ToolException as error:
        word = _WORD.search(expression)
        return Calculation(expression, f"{word[0]!r} is not a number." if word else str(error))
    return Calculation(expression)
