"""Citations: what is checked, what is tidied."""

import pytest

from nodes.citations import check_citations, cited, nothing, plain_urls, render, uncited

KNOWN = {"https://a.example/", "corpus:b.md"}


@pytest.mark.parametrize(
    ("answer", "references"),
    [("No claim.", []), ("So [1].", ["corpus:b.md"]), ("So [1, 2] and [2].", ["corpus:b.md", "https://a.example/"])],
)
def test_what_is_right_passes(answer: str, references: list[str]) -> None:
    assert check_citations(answer, references, KNOWN) is None


def test_what_is_wrong_is_named() -> None:
    problem = check_citations("So [1] and [3].", ["https://b.example/"], KNOWN)
    assert problem is not None
    assert "https://b.example/" in problem
    assert "[3]" in problem
    assert "[1]" not in problem


def test_numbers_in_brackets_are_citations_and_nothing_else_is() -> None:
    assert cited("a [1], b [2,3], c [x], d[4] (5) [1999-2000]") == {1, 2, 3, 4}
    assert uncited("So it is [1], and so [2, 3].") == "So it is, and so."


def test_numbering_before_references_is_dropped() -> None:
    assert plain_urls(["[1] https://a.example/", "2. corpus:b.md", " 3) x:y ", "https://1.example/2"]) == [
        "https://a.example/",
        "corpus:b.md",
        "x:y",
        "https://1.example/2",
    ]


@pytest.mark.parametrize("heading", ["References:", "## References", "**References:**", "Reference:"])
def test_a_list_of_the_models_own_is_replaced(heading: str) -> None:
    assert render(f"So [1].\n\n{heading}\n[1] made up", ["corpus:b.md"]) == "So [1].\n\nReferences:\n[1] corpus:b.md"


def test_an_answer_without_references_has_no_list() -> None:
    assert render(" So. ", []) == "So."


@pytest.mark.parametrize(("text", "expected"), [("", True), (" None. ", True), ("n/a", True), ("no dates", False)])
def test_when_a_critique_says_nothing(text: str, expected: bool) -> None:
    assert nothing(text) is expected
