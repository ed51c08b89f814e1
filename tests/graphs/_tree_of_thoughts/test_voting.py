"""Votes in the words of a model."""

import pytest

from reflective_agents.graphs._tree_of_thoughts.voting import read_vote


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The best choice is 2", 2),
        ("Choice 1 is short.\nThe best choice is {3}.", 3),
        ("**The best choice is: 1**", 1),
        ("the BEST CHOICE is candidate 2", 2),
        ("One might say the best choice is 1, but no.\nThe best choice is 3", 3),
        ("The best choice is 4", None),
        ("The best choice is 0", None),
        ("The best choice is 99999999999999999999", None),
        ("最佳选择是 ２。", 2),
        ("Die beste Wahl ist **3**", 3),
        ("ตัวเลือกที่ดีที่สุดคือ 1", 1),
        ("I like 2 best.", None),
        ("", None),
    ],
)
def test_a_vote_names_one_of_the_candidates_or_does_not_count(text: str, number: int | None) -> None:
    assert read_vote(text, 3) == number
