"""Citations across the answers of several workers: numbered once where they are read together."""

import pytest

from reflective_agents.nodes.evidence.references import MARK, number_together, with_own_references

A, B, C = "https://a.example/", "https://b.example/", "corpus:c.md"
TITLED = "So [1].\n\nReferences:\n[1] The sea, https://sea.example/"
FIRST = f"So [1], and so [2].\n\nReferences:\n[1] {A}\n[2] {B}"
SECOND = f"Else [1] or [1, 2].\n\nReferences:\n[1] {C}\n[2] {A}"


def test_a_number_means_the_same_source_in_all_answers() -> None:
    texts, sources = number_together([FIRST, "It cites nothing, not even a[1].", SECOND])
    assert {number: source.url for number, source in sources.items()} == {1: A, 2: B, 3: C}
    assert texts == [FIRST, "It cites nothing, not even a[1].", f"Else [3] or [3, 1].\n\nReferences:\n[3] {C}\n[1] {A}"]


def test_marks_keep_the_sources_of_others_apart_from_ones_own() -> None:
    texts, _ = number_together([FIRST], "s")
    assert texts == [f"So [s1], and so [s2].\n\nReferences:\n[s1] {A}\n[s2] {B}"]


@pytest.mark.parametrize(
    ("answer", "searched", "text"),
    [
        ("Hence [s2].", False, f"Hence [1].\n\nReferences:\n[1] {B}"),
        ("Hence [S2][s1], [s2, s1].", True, f"Hence [1][2], [1, 2].\n\nReferences:\n[1] {B}\n[2] {A}"),
        (
            f"Own [1], theirs [s2].\n\nReferences:\n[1] {C}",
            True,
            f"Own [1], theirs [2].\n\nReferences:\n[1] {C}\n[2] {B}",
        ),
        ("Without the mark [2].", False, f"Without the mark [1].\n\nReferences:\n[1] {B}"),
        (f"Theirs by address [7].\n\nReferences:\n[7] {A}", False, f"Theirs by address [1].\n\nReferences:\n[1] {A}"),
        ("Scores lie in [0, 1], as in `a[s1]`.", True, "Scores lie in [0, 1], as in `a[s1]`."),
        (FIRST, True, FIRST),
        ("None.", False, "None."),
    ],
)
def test_an_answer_gets_a_list_of_its_own(answer: str, searched: bool, text: str) -> None:
    settled = with_own_references(answer, [A, B], searched=searched)
    assert (settled.text, settled.wrong) == (text, [])
    assert with_own_references(settled.text, [A, B], searched=True).text == text, "what is settled stays"


@pytest.mark.parametrize(
    ("answer", "text", "wrong"),
    [
        ("So [s9].", "So.", ["[s9]"]),
        ("So [9].", "So.", ["[9]"]),
        ("So [1].\n\nReferences:\n[1] https://made.up/", "So.", ["[1] https://made.up/"]),
        (
            f"So [1, 2].\n\nReferences:\n[1] {B}\n[2] https://made.up/",
            f"So [1].\n\nReferences:\n[1] {B}",
            ["[2] https://made.up/"],
        ),
    ],
)
def test_who_has_not_searched_cites_what_others_have_found(answer: str, text: str, wrong: list[str]) -> None:
    settled = with_own_references(answer, [A, B], searched=False)
    assert (settled.text, settled.wrong) == (text, wrong)


def test_titles_go_along() -> None:
    [text], sources = number_together([TITLED], MARK)
    urls = [source.url for source in sources.values()]
    assert text == "So [s1].\n\nReferences:\n[s1] The sea, https://sea.example/"
    on_its_way = with_own_references("Deep [s1].", urls, searched=True, prompt_text=f"<report>\n{text}\n</report>")
    assert on_its_way.text == "Deep [1].\n\nReferences:\n[1] The sea, https://sea.example/"
