"""Arithmetic for agents that call tools: four operations and a calculator, all with exact fractions.

`evaluate` reads an expression itself and never runs it; its length, its numbers and its powers are bounded, so that
no text a model writes can keep it busy.
"""

import ast
import operator
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from langchain_core.tools import BaseTool, StructuredTool, ToolException

MAX_CHARACTERS = 500
"""Length of an expression."""
MAX_BITS = 4_096
"""Size of a numerator or denominator; about 1,200 digits."""
MAX_PLACES = 30
"""Digits after the point up to which a fraction is shown as a decimal number."""

_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ALPHABET = re.compile(r"[0-9.eE_+\-*/%()\s]+")
_SPELLINGS = str.maketrans({"\N{MULTIPLICATION SIGN}": "*", "\N{DIVISION SIGN}": "/", "\N{MINUS SIGN}": "-", "^": "**"})


def evaluate(expression: str) -> Fraction:
    """Work out an expression exactly.

    Args:
        expression: whole and decimal numbers, + - * / // % and **, parentheses. ^ stands for **.

    Returns:
        The value, as a fraction.

    Raises:
        ToolException: if it is no such expression, divides by zero, or is too large; the text says which.
    """
    text = expression.translate(_SPELLINGS).strip()
    if len(text) > MAX_CHARACTERS:
        raise ToolException(f"The expression is longer than {MAX_CHARACTERS} characters: work it out in parts.")
    try:
        # Names, strings and calls never reach Python's parser.
        if not _ALPHABET.fullmatch(text):
            raise ValueError("not arithmetic")
        return _value(ast.parse(text, mode="eval").body, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ToolException(f"{text!r} is no arithmetic expression.") from error


def _value(node: ast.expr, text: str) -> Fraction:
    match node:
        case ast.Constant():
            # As it is written: the parser has made a float of it, which is not exact.
            return _number(ast.get_source_segment(text, node) or "")
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, text)
        case ast.UnaryOp(ast.UAdd(), operand):
            return _value(operand, text)
        case ast.BinOp(left, ast.Pow(), right):
            return _power(_value(left, text), _value(right, text))
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            a, b = _value(left, text), _value(right, text)
            if b == 0 and isinstance(operation, ast.Div | ast.FloorDiv | ast.Mod):
                raise ToolException("Division by zero is not possible.")
            return _bounded(Fraction(_OPERATIONS[type(operation)](a, b)))
        case _:
            raise ValueError("not arithmetic")


def _number(text: str) -> Fraction:
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error
    if not number.is_finite():
        raise ToolException("Infinite and undefined numbers cannot be calculated with.")
    # Before 1e999999999 is written out as an integer.
    if abs(number.adjusted()) > MAX_BITS // 4:
        raise ToolException("The numbers become too large.")
    return _bounded(Fraction(number))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise ToolException("Only whole numbers can stand in an exponent.")
    if base == 0 and exponent < 0:
        raise ToolException("Division by zero is not possible.")
    if abs(exponent) * _bits(base) > MAX_BITS:  # looked at before it is worked out
        raise ToolException("The numbers become too large.")
    return Fraction(base ** int(exponent))


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Fraction) -> Fraction:
    if _bits(value) > MAX_BITS:
        raise ToolException("The numbers become too large.")
    return value


def exact(value: Fraction) -> str:
    """Write a fraction without loss: 9336, 7.5, or, where no decimal number is the same, 1/3."""
    if value.denominator == 1:
        return str(value)
    for places in range(1, MAX_PLACES + 1):
        if 10**places % value.denominator == 0:
            sign = "-" if value < 0 else ""
            digits = str(abs(value.numerator) * 10**places // value.denominator).zfill(places + 1)
            return f"{sign}{digits[:-places]}.{digits[-places:]}"
    return str(value)  # no decimal number is the same


def show(value: Fraction) -> str:
    """Write a fraction for a reader: as `exact` does, but 1/3 as "1/3 (about 0.333333)"."""
    text = exact(value)
    if "/" not in text:
        return text
    return f"{text} (about {Decimal(value.numerator) / value.denominator:.6g})"


def arithmetic_tools() -> list[BaseTool]:
    """Return the tools `add`, `subtract`, `multiply`, `divide` and `calculator`.

    They answer with the exact result as text. What cannot be worked out is a tool message with status "error".
    """

    def add(a: int | float, b: int | float) -> str:
        """Add two numbers: a + b."""
        return _calculate(a, "+", b)

    def subtract(a: int | float, b: int | float) -> str:
        """Subtract one number from another: a - b."""
        return _calculate(a, "-", b)

    def multiply(a: int | float, b: int | float) -> str:
        """Multiply two numbers: a * b."""
        return _calculate(a, "*", b)

    def divide(a: int | float, b: int | float) -> str:
        """Divide one number by another: a / b."""
        return _calculate(a, "/", b)

    def calculator(expression: str) -> str:
        """Work out an arithmetic expression such as (2 + 3) * 4 / 7. Allowed are numbers, + - * / // % ** and ( )."""
        return show(evaluate(expression))

    functions: list[Callable[..., str]] = [add, subtract, multiply, divide, calculator]
    return [StructuredTool.from_function(function, handle_tool_error=True) for function in functions]


def _calculate(a: int | float, operation: str, b: int | float) -> str:
    # A float is taken for the decimal number it is written as: 0.1 + 0.2 is 0.3.
    return show(evaluate(f"({a}) {operation} ({b})"))
