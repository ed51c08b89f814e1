"""The arithmetic tools."""

import contextlib
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException

from reflective_agents.tools.arithmetic import arithmetic_tools, evaluate, exact, show

TOOLS = {tool.name: tool for tool in arithmetic_tools()}


def call(name: str, **arguments: Any) -> ToolMessage:
    answer = TOOLS[name].invoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
    assert isinstance(answer, ToolMessage)
    return answer


def test_the_gear_reducers_step_by_step() -> None:
    """12 reducers at 750 yuan, each using 0.5 yuan of power an hour, 8 hours a day, for one week."""
    price = call("multiply", a=12, b=750).content
    hourly = call("multiply", a=12, b=0.5).content
    hours = call("multiply", a=8, b=7).content
    power = call("multiply", a=float(str(hourly)), b=float(str(hours))).content
    assert call("add", a=float(str(price)), b=float(str(power))).content == "9336"


def test_the_gear_reducers_at_once() -> None:
    assert call("calculator", expression="12*750 + 12*0.5*8*7").content == "9336"


@pytest.mark.parametrize(
    ("name", "a", "b", "result"),
    [
        ("add", 0.1, 0.2, "0.3"),
        ("subtract", 1, 2.5, "-1.5"),
        ("multiply", 9007199254740993, 3, "27021597764222979"),
        ("divide", 10, 4, "2.5"),
        ("divide", -1, 3, "-1/3 (about -0.333333)"),
        ("divide", 1e22, 1e-7, "1" + "0" * 29),
        ("add", "750", 1, "751"),
    ],
)
def test_operations(name: str, a: Any, b: Any, result: str) -> None:
    assert call(name, a=a, b=b).content == result


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", Fraction(14)),
        ("-(2 - 5) ** 2", Fraction(-9)),
        ("(-3) ^ 2", Fraction(9)),
        ("6 \N{MULTIPLICATION SIGN} 7 \N{DIVISION SIGN} 4 \N{MINUS SIGN} 1", Fraction(19, 2)),
        ("2 ** -2", Fraction(1, 4)),
        ("7 // 2 + 7 % 4", Fraction(6)),
        ("1e3 + .5 + 1_000", Fraction(4001, 2)),
        ("0.1000000000000000000000000001 * 10", Fraction(Decimal("1.000000000000000000000000001"))),
        (" +5 ", Fraction(5)),
    ],
)
def test_expressions(expression: str, value: Fraction) -> None:
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("1 / 0", "Division by zero"),
        ("1 // (2 - 2)", "Division by zero"),
        ("0 ** -1", "Division by zero"),
        ("2 ** 0.5", "whole numbers"),
        ("9**9**9", "too large"),
        ("9**-9**9", "too large"),
        ("1e-99999999999", "too large"),
        ("0e99999999999", "too large"),
        ("1e99999999999999999999999", "cannot be calculated|too large|no arithmetic"),
        ("10**1000 * 10**1000", "too large"),
        ("1+" * 300 + "1", "longer than 500"),
        ("(" * 400, "no arithmetic expression"),
        ("__import__('os')", "no arithmetic expression"),
        ("1,000", "no arithmetic expression"),
        ("1 if 1 else 2", "no arithmetic expression"),
        ("0x10", "no arithmetic expression"),
        ("12 yuan", "no arithmetic expression"),
        ("1 2", "no arithmetic expression"),
        ("~1", "no arithmetic expression"),
        ("", "no arithmetic expression"),
    ],
)
def test_what_cannot_be_worked_out_is_a_tool_error(expression: str, reason: str) -> None:
    with pytest.raises(ToolException, match=reason):
        evaluate(expression)
    assert call("calculator", expression=expression).status == "error"


def test_division_by_zero_is_told_to_the_model() -> None:
    answer = call("divide", a=1, b=0)
    assert (answer.status, answer.content) == ("error", "Division by zero is not possible.")
    assert call("add", a=float("inf"), b=1).status == "error"


@given(st.fractions())
def test_what_is_written_exactly_is_read_back(value: Fraction) -> None:
    assert evaluate(exact(value)) == value
    assert show(value).partition(" (about ")[0] == exact(value)


@given(st.text(alphabet="0123456789.eE+-*/%() _", max_size=40))
def test_any_text_is_worked_out_or_refused(text: str) -> None:
    with contextlib.suppress(ToolException):
        assert isinstance(evaluate(text), Fraction)


@pytest.mark.parametrize("name", TOOLS)
def test_descriptions(name: str) -> None:
    assert name in {"add", "subtract", "multiply", "divide", "calculator"}
    assert TOOLS[name].description
    assert set(TOOLS[name].args) == ({"expression"} if name == "calculator" else {"a", "b"})
