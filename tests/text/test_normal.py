"""Normal forms: when two answers say the same."""

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflective_agents.text.normal import equal, folded, normal_form, numbers, read_number, tidy

NUMBERS = {
    "1.5": "3/2",
    "-3": "-3",
    "+3": "3",
    "\N{MINUS SIGN}3": "-3",
    "\N{EN DASH}3": "-3",
    "1/2": "1/2",
    "1 1/2": "3/2",
    "\N{VULGAR FRACTION ONE HALF}": "1/2",
    "1\N{VULGAR FRACTION ONE HALF}": "3/2",
    "1,000": "1000",
    "1,234,567.5": "2469135/2",
    "12,34,567": "1234567",
    "1.000.000": "1000000",
    "1.234,5": "2469/2",
    "1'000": "1000",
    "1\N{NO-BREAK SPACE}000": "1000",
    "10 000,5": "20001/2",
    "1,5": "3/2",
    "0,125": "1/8",
    "1.500": "3/2",
    "$1,000": "1000",
    "-$3": "-3",
    "50%": "1/2",
    "2,5 %": "1/40",
    "20 percent": "1/5",
    "1.5e3": "1500",
    "1.5 \N{MULTIPLICATION SIGN} 10^3": "1500",
    "\uff11\uff12\uff0e\uff15": "25/2",
    "\N{ARABIC-INDIC DIGIT THREE}\N{ARABIC DECIMAL SEPARATOR}\N{ARABIC-INDIC DIGIT FIVE}": "7/2",
    "\N{THAI DIGIT FOUR}\N{THAI DIGIT TWO}": "42",
    ".5": "1/2",
    "007": "7",
    "48.": "48",
}


def test_numbers_are_read_however_they_are_written() -> None:
    for text, value in NUMBERS.items():
        assert read_number(text) == Fraction(value)
        assert normal_form(text) == value


def test_what_is_more_or_less_than_a_number_is_none() -> None:
    for text in ["", "A4", "9:40", "1.2.3", "3/4/2026", "1,2,3", "1/0", "5 km", "3-2", "\N{EURO SIGN}5"]:
        assert read_number(text) is None


EQUAL = [
    ("The Paris.", "paris"),
    ("**Paris**", "Paris"),
    ("5km", "5 km"),
    ("1.50 km", "1,5km"),
    ("\N{EURO SIGN}5", "5 \N{EURO SIGN}"),
    ("1, 2, 3", "1,2,3"),
    ("The answer is 42.", "42"),
    ("\u5317\u4eac", "\u5317\u4eac\u3002"),
    ("\u5317\u4eac", "\u7b54\u6848\uff1a\u5317\u4eac"),
    ("\u5317 \u4eac", "\u5317\u4eac"),
    ("\u517148\u9875", "\u5171 48 \u9875"),
    ("\uff30\uff41\uff52\uff49\uff53", "Paris"),
    ("(A)", "A"),
    ("Stra\u00dfe", "STRASSE"),
    ("cafe\u0301", "caf\u00e9"),
]
DIFFERENT = [
    ("1.5", "15"),
    ("14.58", "1458"),
    ("-3", "3"),
    ("1/2", "12"),
    ("9:40", "940"),
    ("3-2", "32"),
    ("1.2.3", "123"),
    ("10\N{SUPERSCRIPT THREE}", "103"),
    ("5 km", "5 kg"),
    ("5 km", "1.5 km"),
    ("50%", "50"),
    ("C++", "C"),
    ("A", "B"),
    ("A", "the"),
    ("\u5317\u4eac", "\u4e0a\u6d77"),
    ("\N{EURO SIGN}5", "\N{POUND SIGN}5"),
    ("version 1.5", "version 15"),
    ("+", "-"),
]


def test_what_is_equal() -> None:
    for text, other in EQUAL:
        assert equal(text, other)


def test_what_is_not() -> None:
    for text, other in DIFFERENT:
        assert not equal(text, other)


@pytest.mark.parametrize("text", ["", "...", " \u2026 "])
def test_a_placeholder_says_nothing(text: str) -> None:
    assert normal_form(text) == ""


def _grouped(digits: str, sign: str) -> str:
    return f"{int(digits):,}".replace(",", sign)


def _decimal(value: Fraction, point: str, thousands: str) -> str:
    """A value with at most three decimal places, written out."""
    whole, thousandths = divmod(abs(value) * 1000, 1000)
    assert whole.denominator == 1 if isinstance(whole, Fraction) else True
    places = f"{int(thousandths):03d}".rstrip("0")
    grouped = _grouped(str(int(whole)), thousands) if thousands else str(int(whole))
    text = f"{grouped}{point}{places}" if places else grouped
    return f"-{text}" if value < 0 else text


THOUSANDTHS = st.builds(Fraction, st.integers(-(10**10), 10**10), st.just(1000))
WIDE = str.maketrans("0123456789.,-", "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19\uff0e\uff0c\uff0d")


def _notations(value: Fraction) -> list[str]:
    """Ways to write a number that can be read in one way only."""
    english = _decimal(value, ".", ",")
    ways = [
        english,
        _decimal(value, ".", ""),
        english.translate(WIDE),
        english.replace("-", "\N{MINUS SIGN}"),
        _decimal(value, ".", "'"),
        _decimal(value, ".", " "),
        _decimal(value, "," if abs(value) >= 1000 else ".", " "),  # 1,234 would be thousands
        f"{value.numerator}/{value.denominator}",
        f"{_decimal(value * 100, '.', '')}%" if (value * 100_000).denominator == 1 else english,
        f"{english}.",
        f"**{english}**",
        f"Answer: {english}",
    ]
    if abs(value) < 1000 and len(_decimal(value, ".", "").partition(".")[2]) in (1, 2):
        ways.append(_decimal(value, ",", ""))  # three places would be thousands
    if abs(value) >= 1_000_000 or (abs(value) >= 1000 and value.denominator > 1):
        ways.append(_decimal(value, ",", "."))  # 1.234 alone would be one and a bit
    return ways


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(THOUSANDTHS, THOUSANDTHS, st.data())
def test_numbers_are_equal_if_and_only_if_their_values_are(
    number: Fraction, other: Fraction, data: st.DataObject
) -> None:
    other = data.draw(st.sampled_from([number, other, -number, number * 10, number * 100]))
    if (other * 1000).denominator != 1:
        return
    first, second = (data.draw(st.sampled_from(_notations(value))) for value in (number, other))
    assert equal(first, second) is (number == other), (first, second)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.text())
def test_any_text_has_a_form_that_is_its_own_form(text: str) -> None:
    form = normal_form(text)
    assert normal_form(f" {text}\n") == form
    tidy(text)
    numbers(text)
    read_number(text)


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("piece", ["1", "1,", "100,", "1 ", "100 ", "1/", "-", ".", "a", "\n", "1.", "answer", "*"])
def test_long_runs_take_linear_work(piece: str) -> None:
    assert isinstance(normal_form(piece * 20_000), str)


@pytest.mark.parametrize("text", ["北京", "答案：北京", "答案是北京。", "最终答案: 北京", "the answer is 北京"])
def test_a_label_in_any_language_is_not_part_of_an_answer(text: str) -> None:
    assert equal(text, "北京")
    assert equal("คำตอบ: 48", "48")


def test_case_and_blanks_do_not_matter_in_a_folded_text() -> None:
    assert folded("  Who\tBAKES\n bread? ") == folded("who bakes bread?") == "who bakes bread?"
