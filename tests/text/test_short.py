"""Which short answers to a question are the same."""

import pytest

from reflective_agents.text.short import short_form

PAGES = "How many pages does Tom read?"


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        (
            PAGES,
            ["42", "42 pages.", "**42.0**", "Tom reads 42 pages", "It is 42.", "He has read 42 pages."],
        ),
        (PAGES, ["1,500", "1500 pages", "Tom reads 1500.0 pages"]),
        (
            "Tom has 3 boxes with 12 pencils each and gives 12 away. How many pencils has he now?",
            ["36", "36 pencils", "He has 36 pencils now.", "Now Tom has 36 pencils left.", "Thus he still has 36."],
        ),
        ("Wie viele Stücke spielt er?", ["42", "42 Stücke", "４２"]),
        (
            "Tom hat 3 Schachteln mit je 12 Stiften. Wie viele hat er?",
            ["36", "36 Stifte", "Er hat jetzt 36 Stifte.", "Tom hat insgesamt 36 Stifte in den Schachteln."],
        ),
        ("汤姆读了多少页？", ["42", "42页", "42页。", "汤姆读了42页。"]),
        ("What does the trip cost for each pupil, in euros?", ["16.11", "16.11 euros", "16.11 euros per pupil"]),
        ("Which sea is deeper?", ["The Baltic", "baltic.", "**Baltic**"]),
    ],
)
def test_equal_answers_have_one_form(question: str, answers: list[str]) -> None:
    assert len({short_form(answer, question) for answer in answers}) == 1


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        (
            PAGES,
            [
                "42",
                "48",
                "-42",
                "4.2",
                "42 %",
                "42 books",
                "not 42",
                "over 42",
                "more than 42",
                "42 or 48",
                "forty",
                "42 €",
                "42 pagodas",
                "",
            ],
        ),
        ("How long does it take?", ["3 hours", "3 days", "3"]),
        ("Which mission landed first?", ["Apollo 11", "Luna 11", "Apollo 12"]),
        ("Was Ada or Bob the first?", ["Ada, not Bob", "Bob, not Ada", "Ada", "Bob"]),
    ],
)
def test_different_answers_have_different_forms(question: str, answers: list[str]) -> None:
    assert len({short_form(answer, question) for answer in answers}) == len(answers)
