"""Citations of a text: read, changed, taken out; all else stays, character by character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflective_agents.nodes.evidence.citation_reader import CitationReader
from reflective_agents.nodes.evidence.citations import resolve
from reflective_agents.nodes.evidence.marks import cited_sentences, replace_citations, without_unknown
from reflective_agents.nodes.evidence.sources import Source
from reflective_agents.text.brackets import marks

SOURCES = {number: Source(number, f"https://p{number}.example/", f"P{number}") for number in (1, 2, 3)}
PIECES = (  # separated by bars
    "[1]|[2, 3]|[9]|【2】|[8][1]|[1][9]|[|]|`|```|\n|\n\n| |a|is |tall|list |. |。|高|$|$$|\\[|\\]|\\(|\\)|(|)|**"
    "|References:\n|[1] https://p2.example/\n|Quellen:\n|1. |- |[7, |5|:|=|*|\r\n|\t|so tall|[1, 2, 3]|~~~|{|}|>"
)
texts = st.lists(st.sampled_from([*PIECES.split("|"), "|"]), max_size=25).map("".join)
EVIDENCE = """# Height [1]
The tower is 330 m tall [1]. It was built in 1889. [2] It is
made of iron [1][3], not of steel.
- It is grey [2]
```
x [1]
```
高330米。[1] 它很高【2】。
The list is [1, 2, 3]."""


def test_sentences_know_what_they_cite() -> None:
    read = cited_sentences(EVIDENCE, SOURCES)
    assert [(sentence.text, sentence.numbers) for sentence in read] == [
        ("# Height", (1,)),
        ("The tower is 330 m tall.", (1,)),
        ("It was built in 1889.", (2,)),
        ("It is made of iron, not of steel.", (1, 3)),
        ("- It is grey", (2,)),
        ("高330米。", (1,)),
        ("它很高。", (2,)),
        ("The list is [1, 2, 3].", ()),
    ]
    assert EVIDENCE[read[3].begin : read[3].end] == "It is\nmade of iron [1][3], not of steel.\n"


def test_sentences_cite_by_the_letter_of_their_list() -> None:
    [sentence] = cited_sentences("You like tea [m2], see [1].", [1, 2], "m")
    assert sentence.numbers == (2,)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("It is so [1], and so [2, 3].", "It is so, and so."),
        ("Known since 1687 [1][2].", "Known since 1687."),
        ("The list is [1, 2, 3], and a[1] is 2.", "The list is [1, 2, 3], and a[1] is 2."),
    ],
)
def test_a_draft_loses_what_can_only_be_a_citation(text: str, rest: str) -> None:
    assert without_unknown(text, []) == rest


@given(texts)
@settings(max_examples=300, deadline=None)
def test_without_sources_every_bracket_is_text(text: str) -> None:
    assert replace_citations(text, [], lambda _: ()) == text


@pytest.mark.thorough
@given(texts)
@settings(max_examples=300, deadline=None)
def test_nothing_but_certain_citations_of_the_unknown_is_changed(text: str) -> None:
    kept = [*text]
    for mark in marks(text):
        if mark.certain and not any(name in ("1", "2", "3") for name in mark.names):
            kept[mark.begin : mark.end] = [""] * (mark.end - mark.begin)
    known = {"1", "2", "3"}
    changed = replace_citations(text, known, lambda names: [name for name in names if name in known])
    if not any(
        mark.certain and 0 < sum(name in known for name in mark.names) < len(mark.names) for mark in marks(text)
    ):
        assert changed.replace(" ", "").replace("\t", "") == "".join(kept).replace(" ", "").replace("\t", "")


@pytest.mark.thorough
@given(texts, st.integers(1, 7))
@settings(max_examples=500, deadline=None)
def test_what_is_streamed_stands(text: str, size: int) -> None:
    reader = CitationReader(SOURCES)
    shown = "".join(reader.feed(text[start : start + size]) for start in range(0, len(text), size))
    assert resolve(text, SOURCES, text, streamed=True).text.startswith(shown.rstrip())
