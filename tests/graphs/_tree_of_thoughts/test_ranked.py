"""Proposals that say how sure they are."""

import pytest

from reflective_agents.graphs._tree_of_thoughts.ranked import read_confidence


@pytest.mark.parametrize(
    ("line", "action", "tenths"),
    [
        ("h1. apple (certain)", "h1. apple", 10),
        ("h1. apple (High), for it fits", "h1. apple", 5),
        ("h1. apple(medium)", "h1. apple", 2),
        ("h1. apple (low)", "h1. apple", 1),
        ("h1. apple", "h1. apple", 1),
        ("**h1. apple** (**certain**)", "h1. apple", 10),
        ("h1. apple（certain）", "h1. apple", 10),
        ("4 + 5 = 9 (left: 6 9 10) (high)", "4 + 5 = 9 (left: 6 9 10)", 5),
        ("4 + 5 = 9 (left: 6 9 10)", "4 + 5 = 9 (left: 6 9 10)", 1),
        ("(certain)", "", 10),
    ],
)
def test_the_word_after_an_action_is_its_confidence(line: str, action: str, tenths: int) -> None:
    assert read_confidence(line) == (action, tenths)
