"""The measurement of the check of answers against their sources, on made-up pages and on the recorded ones."""

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.claims import (
    ALTERED,
    LANGUAGES,
    THOUGHTS,
    Claim,
    Page,
    another_number,
    claims,
    hotpot,
    read_pages,
    swapped_name,
    thoughts,
    xquad,
)
from bench.support import fill_in, is_flagged, is_refused, key, read_replies, sample, table
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request

DOCS = Path(__file__).parents[1] / "docs"
PORT = "The ferry Petrel was built in 1907 by Anna Lund for the island of Orra."
HARBOUR = "Old harbour men say that Anna Lund sold it in 1911 to Karl Ness in Vell."
GERMAN = "Die Fähre Petrel wurde 1907 von Anna Lund für die Insel Orra gebaut."


def page(text: str, names: list[str], topic: str = "ferries") -> Page:
    return Page("en", topic, text, text, names, [("Who?", text)])


PAGES = [
    page(PORT, ["Anna Lund", "Orra"]),
    page(HARBOUR, ["Anna Lund", "Karl Ness"]),
    page("In 1955 the tower of Bonn was closed by the mayor Paul Stern.", ["Bonn", "Paul Stern"], "towers"),
]


def claim(answer: str, passages: list[str], cited: int = 1) -> Claim:
    return Claim("en", "supported", "Who built the Petrel?", answer, passages, cited)


def test_each_way_to_alter_a_sentence_leaves_a_supported_one_beside_it() -> None:
    made = [*claims({"mine": PAGES}, each=1)]
    assert made == [*claims({"mine": PAGES}, each=1)]
    assert Counter(each.kind for each in made)["supported"] == Counter(each.supported for each in made)[False]
    for original, altered in zip(made[::2], made[1::2], strict=True):
        assert original.supported
        assert original.sentence in original.passages[original.cited - 1]
        assert altered.sentence not in altered.passages[altered.cited - 1]
        assert (altered.kind == "citation") == (altered.sentence == original.sentence)


def test_names_and_numbers_come_from_where_they_should() -> None:
    chance = random.Random(1)
    assert another_number(PAGES[0], PORT, PAGES, chance) == PORT.replace("1907", "1955")
    assert swapped_name(PAGES[1], "It was Karl Ness.", PAGES, chance) == "It was Anna Lund."
    assert swapped_name(PAGES[0], PORT, PAGES, chance) == ""


def test_paragraphs_of_both_sets_are_read() -> None:
    questions = [{"question": "Wer?", "answers": ["Anna Lund"]}, {"question": "Wann?", "answers": ["1907"]}]
    english = [{"question": "Who?", "answers": ["Anna Lund"]}, {"question": "When?", "answers": ["1907"]}]
    read = xquad("de", {"title": "f", "text": GERMAN, "questions": questions}, {"text": PORT, "questions": english})
    assert (read.names, read.facts, read.english) == (["Anna Lund"], [("Wer?", GERMAN), ("Wann?", GERMAN)], PORT)
    context = [["Petrel (ship)", [PORT, " It was sold."]], ["Orra", ["Orra is an island."]]]
    row = {"id": "7", "question": "Where?", "gold": "Orra", "context": context, "supporting_facts": [["Orra", 0]]}
    assert [(each.names, each.facts) for each in hotpot(row)] == [
        (["Petrel", "Orra", "Orra"], []),
        (["Orra", "Orra"], [("Where?", "Orra is an island.")]),
    ]


def test_code_flags_a_number_and_a_checker_refuses_what_it_cannot_quote() -> None:
    right, wrong = claim(PORT, [PORT]), claim(PORT.replace("1907", "1955"), [PORT])
    assert (is_flagged(right), is_flagged(wrong)) == (False, True)

    def form(support: str, words: str, fact: bool = True) -> str:
        check = {"number": 1, "fact": fact, "words": words, "support": support}
        return json.dumps({"sentences": [check], "answered": "yes"})

    assert not is_refused(right, form("full", "built in 1907 by Anna Lund"))
    assert is_refused(right, form("full", "built in 1955 by Anna Lund"))
    assert is_refused(right, form("part", ""))
    assert is_refused(right, form("none", "", fact=False))
    assert is_refused(right, "I cannot tell.")


def test_a_sample_is_half_supported_and_asks_nothing_twice() -> None:
    made = [each._replace(question=f"{number}") for number, each in enumerate(claims({"mine": PAGES}, each=1))]
    drawn = sample(made, 6)
    assert Counter(each.supported for each in drawn) == {True: 3, False: 3}
    assert drawn[:4] == sample(made, 4)
    assert len({key(each) for each in drawn}) == 6


@pytest.mark.wire
def test_forms_that_are_there_are_not_asked_for_again(tmp_path: Path) -> None:
    def checker(request: Request) -> Reply:
        assert request.schema == "SupportCheck"
        words = "built in 1907" if "1907" in request.last.rpartition("<sentence")[2] else ""
        return {
            "sentences": [{"number": 1, "fact": True, "words": words, "support": "full" if words else "none"}],
            "answered": "yes",
        }

    made, file = [claim(PORT, [PORT]), claim(PORT.replace("1907", "1955"), [PORT])], tmp_path / "forms.jsonl"
    with OpenAIServer(checker).threaded() as server:
        fill_in(made[:1], server.base_url, file)
        fill_in(made, server.base_url, file)
        assert len(server.requests) == 2
    forms = read_replies(file)
    assert [is_refused(each, forms[key(each)]) for each in made] == [False, True]


@pytest.mark.thorough
def test_no_verbatim_sentence_is_flagged_and_the_page_shows_what_code_finds(recorded: Path) -> None:
    made = [*claims(read_pages(recorded)), *thoughts(recorded)]
    assert Counter(each.kind in ALTERED for each in made if each.kind in ("supported", *ALTERED)) == {
        True: 200,
        False: 200,
    }
    assert {each.language for each in made if each.kind in ALTERED} == {"en", "de", "zh", "th"}
    assert not any(is_flagged(each) for each in made if each.kind == "supported")
    assert "\n".join(table("flagged by code", made, is_flagged)) in (DOCS / "sources.md").read_text()


def test_pages_and_thoughts_are_read_from_packed_files(tmp_path: Path) -> None:
    paragraph = {"title": "f", "text": PORT, "questions": [{"question": "Who?", "answers": ["Anna Lund"]}]}
    context = [["Petrel", [PORT, " It was sold."]], ["Orra", ["Orra is an island."]]]
    hops = {"id": "7", "question": "Where?", "gold": "Orra", "context": context, "supporting_facts": [["Petrel", 0]]}
    trials = [
        {"task": hops, "outputs": [{"role": "thought", "text": f"{text} So Orra."}], "verdict": [{"status": status}]}
        for text, status in (("It was built for Orra.", "correct"), ("I do not know.", "incorrect"))
    ]
    files: dict[str, list[Any]] = {
        **{f"xquad_{language}": [paragraph] for language in LANGUAGES},
        "bench_hotpot100_distractor": [hops],
    }
    for name, lines in (files | dict.fromkeys(THOUGHTS, trials)).items():
        with gzip.open(tmp_path / f"{name}.dev.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines)
    assert [len(pages) for pages in read_pages(tmp_path).values()] == [2, 1, 1, 1, 1]
    assert [(each.sentence, each.passages) for each in thoughts(tmp_path)] == [
        ("It was built for Orra.", [f"Petrel: {PORT} It was sold."]),
        ("So Orra.", [f"Petrel: {PORT} It was sold."]),
    ] * len(THOUGHTS)
