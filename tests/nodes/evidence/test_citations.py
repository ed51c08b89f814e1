"""Citations: what is checked, what is tidied."""

import json

import pytest
from langchain_core.messages import HumanMessage

from reflective_agents.nodes.evidence.citation_reader import CitationReader
from reflective_agents.nodes.evidence.citations import resolve_citations, says_nothing
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.sources import sources_of

FOUND = [
    json.dumps([{"url": "https://a.example/", "content": "A."}, {"url": "corpus:b.md", "content": "B."}]),
    "Nothing was found.",
    json.dumps([{"url": "https://a.example/", "content": "More."}, {"url": "corpus:c.md", "content": "C."}]),
]
"""Three sources: the second one was found twice."""


@pytest.mark.parametrize(
    ("answer", "listed"),
    [
        ("So [2].", "[2] corpus:b.md"),
        ("So [1, 3] and [1].", "[1] https://a.example/\n[3] corpus:c.md"),
        ("So [3][1]", "[1] https://a.example/\n[3] corpus:c.md"),
    ],
)
def test_the_list_is_built_of_the_numbers_that_are_cited(answer: str, listed: str) -> None:
    settled = resolve_citations(answer, FOUND)
    assert settled.text == f"{answer}\n\nReferences:\n{listed}"
    assert settled.wrong == []
    assert resolve_citations(settled.text, FOUND) == settled, "what is settled stays"


@pytest.mark.parametrize(
    ("answer", "heading"),
    [
        ("The pond fed two wheels, and the dam broke in 1861 [2].", "References"),
        ("因此，磨坊停工了【2】。", "参考资料"),
        ("Der Damm brach im Sturm, und die Mühle wurde nicht wieder aufgebaut [2].", "Quellen"),
        ("La digue est rompue, et les roues ne tournent pas dans cette eau [2].", "Références"),
        ("ดังนั้นโรงสีจึงหยุดทำงาน [2]", "แหล่งอ้างอิง"),
        ("Мельница остановилась [2].", "References"),
    ],
)
def test_the_list_is_headed_in_the_language_of_the_answer(answer: str, heading: str) -> None:
    settled = resolve_citations(answer, FOUND)
    assert settled.text == f"{answer}\n\n{heading}:\n[2] corpus:b.md"
    assert split_references(settled.text) == (answer, {2: "corpus:b.md"})
    assert resolve_citations(settled.text, FOUND) == settled, "what is settled stays"


def test_a_list_in_another_language_is_found_again_where_nothing_is_cited() -> None:
    answer = "Der Damm brach im Sturm, und die Mühle wurde nicht wieder aufgebaut."
    settled = resolve_citations(f"{answer}\n\nQuellen:\n[2] corpus:b.md", FOUND)
    assert (settled.body, settled.references) == (answer, ["corpus:b.md"])
    assert resolve_citations(settled.text, FOUND) == settled


TITLED = [
    json.dumps(
        [
            {"title": "Tides — Ebb", "url": "corpus:b.md", "content": "B."},
            {"title": "See https://made.up/ now", "url": "https://a.example/", "content": "A."},
            {"title": "c.md", "url": "corpus:c.md", "content": "C."},
        ]
    )
]


def test_several_passages_of_a_document_are_referred_to_by_its_title() -> None:
    found = json.dumps(
        [{"title": f"Tides — {part}", "url": "corpus:b.md", "content": f"{part}."} for part in ("Ebb", "Flood")]
    )
    assert resolve_citations("So [1].", [found]).text.endswith("[1] Tides, corpus:b.md")


def test_references_have_the_titles_of_what_was_found() -> None:
    settled = resolve_citations("So [1, 2], so [3].", TITLED)
    assert settled.text == (
        "So [1, 2], so [3].\n\nReferences:\n[1] Tides — Ebb, corpus:b.md\n"
        "[2] See https: //made.up/ now, https://a.example/\n[3] corpus:c.md"
    )
    assert split_references(settled.text)[1] == {1: "corpus:b.md", 2: "https://a.example/", 3: "corpus:c.md"}
    assert resolve_citations(settled.text, TITLED) == settled, "what is settled stays"


@pytest.mark.parametrize(
    ("answer", "body", "wrong"),
    [
        ("So [1], and so [4].", "So [1], and so.", ["[4]"]),
        ("So [2, 9].", "So [2].", ["[9]"]),
        ("So [1].\n\nReferences:\n[1] https://made.up/", "So.", ["[1] https://made.up/"]),
        ("See https://made.up/page.", "See https://made.up/page.", ["https://made.up/page"]),
    ],
)
def test_what_was_never_found_is_removed_and_named(answer: str, body: str, wrong: list[str]) -> None:
    settled = resolve_citations(answer, FOUND)
    assert (settled.body, settled.wrong) == (body, wrong)
    assert all(name in settled.facts for name in wrong)


@pytest.mark.parametrize(
    "text",
    [
        "Scores lie in [0, 1].",
        "The edition of [2024].",
        "Take `items[7]`, or\n```python\nprint(items[8])\n```\nas it is.",
        "See https://a.example/ and (https://asked.example).",
        "No claim.",
        "The steps:\n1. Search\n2. Answer",
    ],
)
def test_what_is_no_citation_stays(text: str) -> None:
    settled = resolve_citations(text, FOUND, [HumanMessage("What of https://asked.example?")])
    assert (settled.text, settled.wrong) == (text, [])


@pytest.mark.parametrize("heading", ["References:", "## References", "Quellen:", "**参考文献：**", ""])
def test_a_list_of_its_own_counts_by_its_addresses_whatever_its_heading(heading: str) -> None:
    listed = f"{heading}\n1. C, a page: corpus:c.md\n- [2] <https://a.example/>"
    assert resolve_citations(f"So [1], so [2].\n\n{listed}", FOUND).text == (
        "So [3], so [1].\n\nReferences:\n[1] https://a.example/\n[3] corpus:c.md"
    )


def test_links_that_are_the_answer_are_no_list_of_references() -> None:
    answer = "Two pages help:\n1. https://a.example/\n2. corpus:b.md"
    assert split_references(answer) == (answer, {})


def test_sources_that_are_only_listed_are_kept() -> None:
    assert resolve_citations("So.\n\nReferences:\n[7] corpus:b.md", FOUND).text == "So.\n\nReferences:\n[2] corpus:b.md"


def test_what_code_says_of_an_answer() -> None:
    assert (
        resolve_citations("So [1].", FOUND).facts
        == "Each citation names a result that was found; the list of references was added by code."
    )
    assert resolve_citations("So.", FOUND).facts == "It cites none of the 3 results that were found."
    assert resolve_citations("So.", []).facts == ""


@pytest.mark.parametrize(("text", "expected"), [("", True), (" None. ", True), ("n/a", True), ("no dates", False)])
def test_when_a_critique_says_nothing(text: str, expected: bool) -> None:
    assert says_nothing(text) is expected


CITING = [
    "Two things [1, 2] are so, and one [4] is not [2024].\nReferences are below.\n\nReferences:\n[1] https://a.example/",
    "1. One [1]\n2. Two [2]\n\nRead this [1]",
    "No sources at all, but an array[0] and a [link].",
    "Everything [9] is made up【8】, or so [7][1], it seems to me.",
    "Take a[1], a[2] and `x [9]`, or\n```\ny = [8]\n```\nfor $z [7]$; the list is [7, 8, 9]. So [1].",
    "So [1], so [2].\n\nQuellen:\n1. C, a page: corpus:c.md\n2. <https://a.example/>",
    "So [1], so [7].\n\nQuellen:\n\n[1] https://made.up/\n[7] corpus:c.md",
    "So it is [1].\nNote:\nthis goes on, and 330 m is its height [8].\r\nThe end.",
]


@pytest.mark.parametrize("answer", CITING)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_what_is_read_of_an_answer_that_comes_is_how_its_checked_form_begins(answer: str, size: int) -> None:
    reader = CitationReader(sources_of(FOUND))
    shown = "".join(reader.feed(answer[start : start + size]) for start in range(0, len(answer), size))
    checked = resolve_citations(answer, FOUND, streamed=True)
    assert checked.text.startswith(shown.rstrip())
    assert len(shown) > 0.6 * len(checked.body) - 30
