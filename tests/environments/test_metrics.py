"""Exact match and F1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.environments.metrics import exact_match, f1, normalise_answer


def test_normalisation() -> None:
    assert normalise_answer("  The Beatles' (an)  A-side, a.k.a. ") == "beatles aside aka"


@pytest.mark.parametrize(
    ("answer", "gold", "em", "overlap"),
    [
        ("The Seine.", "seine", 1.0, 1.0),
        ("river Seine", "Seine", 0.0, 2 / 3),
        ("the river Seine in France", "Seine river", 0.0, 2 * 2 / (4 + 2)),
        ("Paris Paris", "Paris", 0.0, 2 / 3),
        ("London", "Paris", 0.0, 0.0),
        ("yes it is", "yes", 0.0, 0.0),
        ("no", "yes no", 0.0, 0.0),
        ("Yes!", "yes", 1.0, 1.0),
        ("", "Paris", 0.0, 0.0),
    ],
)
def test_scores(answer: str, gold: str, em: float, overlap: float) -> None:
    assert exact_match(answer, gold) == em
    assert f1(answer, gold) == pytest.approx(overlap)


@given(st.text(), st.text())
def test_f1_is_symmetric_and_bounded(answer: str, gold: str) -> None:
    assert 0 <= f1(answer, gold) == f1(gold, answer) <= 1
