"""The steps and expressions of the game of 24: reading, checking, and solving by trying all of them."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from langchain_core.tools import ToolException

from reflective_agents.tools.arithmetic import evaluate, exact

TARGET = Fraction(24)
_NUMBER = r"-?\d+(?:\.\d+)?(?:/0*[1-9]\d*)?"
_OPERAND = rf"(\({_NUMBER}\)|{_NUMBER})"
_STEP = re.compile(
    rf"{_OPERAND}\s*([-+*/])\s*{_OPERAND}\s*=\s*{_OPERAND}(?:\s*\(left:\s*((?:{_NUMBER}(?:[\s,]+{_NUMBER})*)?)\s*\))?"
)
_MAX_CHARACTERS = 300


class Step(NamedTuple):
    """One arithmetic step, as it is proposed: `a operation b = c (left: ...)`."""

    a: Fraction
    operation: str
    b: Fraction
    c: Fraction
    left: tuple[Fraction, ...] | None
    """The numbers said to remain, in rising order; None if the step does not say."""


def parse_step(text: str) -> Step | None:
    """Read a step such as `10 / 4 = 2.5 (left: 2.5 5 6)`; the part in parentheses may be missing.

    Returns:
        The step, legal or not; None if the text is none.
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    match = _STEP.fullmatch(without_backticks(text))
    if match is None:
        return None
    a, operation, b, c, left = match.groups()
    rest = None
    if left is not None:
        rest = tuple(sorted(map(_read, re.findall(_NUMBER, left))))
    return Step(_read(a), operation, _read(b), _read(c), rest)


def without_backticks(action: str) -> str:
    """Return an action without the backticks that models put around all or parts of it."""
    return action.replace("`", "").strip()


def check_step(numbers: Sequence[Fraction], step: Step) -> str | None:
    """Say why a step is illegal where these numbers are left; None if it is legal."""
    missing = Counter([step.a, step.b]) - Counter(numbers)
    if missing:
        return f"There is no {listed(missing.elements())} among what is left: {listed(numbers)}."
    result = result_of(step.a, step.operation, step.b)
    if result is None:
        return "Division by zero is not possible."
    if result != step.c:
        return f"{exact(step.a)} {step.operation} {exact(step.b)} is {exact(result)}, not {exact(step.c)}."
    left = numbers_after(numbers, step)
    if step.left is not None and list(step.left) != left:
        return f"After this step {listed(left)} would be left, not {listed(step.left) or 'nothing'}."
    return None


def check_expression(numbers: Iterable[str], expression: str) -> str | None:
    """Say why an expression is not a solution; None if it is.

    It is one if it uses each of the numbers once, only + - * / and parentheses, and equals 24 exactly.
    """
    if sorted(re.findall(r"\d+", expression)) != sorted(numbers):
        return "The answer must use each of the numbers once, and no other."
    if re.search(r"[^-+*/()\d\s]|\*\s*\*|/\s*/", expression):
        return "The answer may use nothing else than + - * / and parentheses."
    try:
        value = evaluate(expression)
    except ToolException as error:
        return str(error)
    return None if value == TARGET else f"The answer is {exact(value)}, not 24."


def solve(numbers: Sequence[str]) -> str | None:
    """Return an expression that uses each number once and equals 24, or None if there is none.

    Searches all games: about 10 ms with four numbers, and up to a hundred times as long with each further number.
    """
    return next(_solutions([Fraction(number) for number in numbers], list(numbers)), None)


def _solutions(values: list[Fraction], terms: list[str]) -> Iterator[str]:
    if len(values) == 1:
        if values[0] == TARGET:
            yield terms[0]
        return
    for i, j in itertools.permutations(range(len(values)), 2):
        rest = [k for k in range(len(values)) if k not in (i, j)]
        for operation in "+-*/":
            result = result_of(values[i], operation, values[j])
            is_twin = operation in "+*" and i > j
            if result is not None and not is_twin:
                left = [values[k] for k in rest]
                left_terms = [terms[k] for k in rest]
                term = f"({terms[i]} {operation} {terms[j]})"
                yield from _solutions([*left, result], [*left_terms, term])


def result_of(a: Fraction, operation: str, b: Fraction) -> Fraction | None:
    """Return the result; None for a division by zero."""
    match operation:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case _:
            return a / b if b else None


def numbers_after(numbers: Sequence[Fraction], step: Step) -> list[Fraction]:
    """Return the numbers that are left after a legal step, in rising order."""
    others = Counter(numbers) - Counter([step.a, step.b])
    return sorted([*others.elements(), step.c])


def _read(number: str) -> Fraction:
    """Read "1.5", "3/2" or "(-1)"; "1.5/2" is read as well."""
    above, _, below = number.strip("()").partition("/")
    return Fraction(above) / Fraction(below or 1)


def listed(numbers: Iterable[Fraction]) -> str:
    """Return numbers as text, with blanks between them."""
    return " ".join(map(exact, numbers))


def step_text(numbers: Sequence[Fraction], step: Step) -> str:
    """Return a legal step as text, with what is left after it."""
    left = listed(numbers_after(numbers, step))
    return f"{exact(step.a)} {step.operation} {exact(step.b)} = {exact(step.c)} (left: {left})"
