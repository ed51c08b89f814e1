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
        "It is impossible to divide by zero.",
        "I do not know of a better book than this one, " + "which tells the whole story from its beginning. " * 6,
    ],
)
def test_an_answer_does_not(text: str) -> None:
    assert not declines(text)
