"""Calculations as models write them."""

from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.environments.calculations import MAX_CHARACTERS, read_calculation


def test_a_calculation_is_read_whatever_is_beside_it() -> None:
    for action, expression in [
        ("calculate: 8 - 2", "8 - 2"),
        ("Calculate: 8 (filling rate) - 2 (leaking rate) = 6 litres per minute", "8 - 2"),
        ("calculate: 8 litres per minute - 2 litres per minute", "8 - 2"),
        ("calculate: 90 km/h * 2 hours", "90 * 2"),
        ("calculate: (12 boys + 18 girls) / 2 groups", "(12 + 18) / 2"),
        ("calculate: (8 - 2) (net rate) * 3", "(8 - 2) * 3"),
        ("calculate: 80 * (1 - 0.25) = 80 * 0.75 = 60", "80 * (1 - 0.25)"),
        ("calculate: rate = 8 - 2 = 6", "8 - 2"),
        ("calculate: 8 - 2.", "8 - 2"),
        ("calculate:\n8 - 2\nThat is the rate.", "8 - 2"),
        ("Calculate the net rate: 8 - 2", "8 - 2"),
        ("**Calculation:** `8 - 2`", "8 - 2"),
        ("calculate(8 - 2) * 3", "(8 - 2) * 3"),
        ("calculator[8 - 2]", "8 - 2"),
        ("计算：8 - 2 = 6", "8 - 2"),
        ("berechne: 8 Liter - 2 Liter", "8 - 2"),
        ("8 - 2 = 6 litres", "8 - 2"),
        ("calculate: 25% of 80 euros", "(25 / 100) * 80"),
        ("calculate: 84 - 59 - (-34)}", "84 - 59 - (-34)"),
        ("calculate: 80 euros * 25 percent", "80 * (25 / 100)"),
        ("calculate: 17 % 5", "17 % 5"),
        ("calculate: 6 x 8", "6 * 8"),
        ("calculate: \\(6 \\times 8\\)", "6 * 8"),
        ("calculate: $1,200 / 7", "1200 / 7"),
        ("calculate: 20", "20"),
        ("There are 30 - 12 = 18 girls.", "30 - 12"),
        ("So, Sara reads 20 * 2 = 40 pages on Tuesday.", "20 * 2"),
        ("calculate: Ben has 37 - 5 = 32 marbles", "37 - 5"),
    ]:
        assert read_calculation(action) == (expression, "")


def test_what_is_unknown_is_not_guessed() -> None:
    for action, why in [
        ("calculate: 5 + Ben's marbles = 37", '"Ben\'s" is not a number.'),
        ("calculate: 2B + 5 = 37", "'B' is not a number."),
        ("calculate: 2 x + 5", "'x' is not a number."),
        ("calculate: x - 8", "'x' is not a number."),
        ("calculate: 3 dozen * 2", "'dozen' is not a number."),
        ("calculate: 8 litres minus 2 litres", "'8 2' is no arithmetic expression."),
        ("calculate: 5 (2 + 3)", "'5 (2 + 3)' is no arithmetic expression."),
        ("calculate: 1 / 0", "Division by zero is not possible."),
        ("calculate:", "'' is no arithmetic expression."),
    ]:
        calculation = read_calculation(action)
        assert calculation is not None
        assert calculation.why == why


def test_other_texts_are_no_calculation() -> None:
    for action in [
        "",
        "96",
        "2026-05-01",
        "There are 18 girls.",
        "Twice 12 - 4 = 20",
        "There are 30 - 12 = 12 girls.",
        "Search[3 + 4 = x]",
        "x = y",
    ]:
        assert read_calculation(action) is None


@given(st.text(alphabet="calculate: 12.5+-*/()=%xof,\n[]'’") | st.text(max_size=2 * MAX_CHARACTERS))
def test_every_text_can_be_read(action: str) -> None:
    for text in (action, f"calculate: {action}"):
        read_calculation(text)
