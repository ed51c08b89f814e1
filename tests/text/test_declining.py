"""Texts that declare that there is no answer, and texts that only sound so."""

import pytest

from reflective_agents.offline.writing import NOTHING
from reflective_agents.text.declining import declines


@pytest.mark.parametrize(
    "text",
    [
        NOTHING,
        f"{NOTHING}\n\nNot covered by what was found: lithium, pollution.",
        "I don’t know.",
        "I do not know who wrote it.",
        "I cannot answer this question.",
        "We could not find it in the articles.",
        "Nothing relevant was found.",
        "No information was found.",
        "This cannot be determined from the text.",
        "Unknown.",
        "N/A",
        "NOT ENOUGH INFO",
        "Das weiß ich nicht? Ich weiß es nicht.",
        "Ich konnte dazu leider nicht finden.",
        "The documents do not say who built her. They say that she was scrapped in 1978 [1].",
        "Die Unterlagen nennen ihre Werft nicht.",
        "I found nothing on this [1].\n\nReferences:\n[1] " + "A long title, " * 30 + "corpus:a.md",
        "我不知道。",
        "没有找到相关信息。",
        "ไม่ทราบ",
    ],
)
def test_a_declared_non_answer_declines(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "None of the three kings came home.",
        "Nobody knows who wrote it; most scholars name Homer.",
        "The committee found nothing wrong with it.",
        "The police could not find him.",
        "An unknown master painted it.",
        "The documents do not say so, but her plate does: the Holm yard built her.",
        "A second breach costs 40 euros; the documents do not say when it is due.",
        "Die Unterlagen nennen sie nicht, aber auf dem Schild steht: Holm.",
        "It is impossible to divide by zero.",
        "I do not know of a better book than this one, " + "which tells the whole story from its beginning. " * 6,
    ],
)
def test_an_answer_does_not(text: str) -> None:
    assert not declines(text)
