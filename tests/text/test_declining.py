"""Texts that declare that there is no answer, and texts that only sound so.

`declining.jsonl` holds fifty of each in eight languages, with the questions; they were written before the rule was. By
those of `declining_tuned.jsonl`, in twelve languages, it was tuned: of its three lots 91, 76 and 79 % of the refusals
were recognised at first.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.offline.writing import NOTHING
from reflective_agents.text.declining import declines

STATEMENTS_OF_THE_WORLD = {"Keine Angabe.", "Se desconoce.", "Non si sa.", "不详", "不明です。"}
"""Refusals that could as well be right answers, such as to who wrote Beowulf: they are not taken for refusals."""


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("name", "count"), [("declining.jsonl", 50), ("declining_tuned.jsonl", 183)])
def test_no_right_answer_of_the_lists_is_refused(name: str, count: int) -> None:
    right = [row["answer"] for row in rows(name) if not row["declines"]]
    assert len(right) == count
    assert [answer for answer in right if declines(answer)] == []


@pytest.mark.parametrize(
    ("name", "count", "missed"),
    [("declining.jsonl", 50, STATEMENTS_OF_THE_WORLD), ("declining_tuned.jsonl", 250, set())],
)
def test_the_refusals_of_the_lists_are_recognised(name: str, count: int, missed: set[str]) -> None:
    refusals = [row["answer"] for row in rows(name) if row["declines"]]
    assert len(refusals) == count
    assert {answer for answer in refusals if not declines(answer)} == missed


def test_a_declared_non_answer_declines() -> None:
    for text in [
        NOTHING,
        f"{NOTHING}\n\nNot covered by what was found: lithium, pollution.",
        "I don’t know.",
        "I do not know who wrote it.",
        "I'm not sure.",
        "I cannot determine that from the given information.",
        "Unable to answer",
        "There is insufficient information to answer.",
        "Not specified",
        "No data available",
        "I can't browse the internet, so I can't say.",
        "I don't have that information. Please check the operator's website.",
        "The answer is not in the documents.",
        "We could not find it in the articles.",
        "Nothing relevant was found.",
        "This cannot be determined from the text.",
        "No source gives the height.",
        "No search result says when she was born.",
        "That information is not available.",
        "Keine der Quellen nennt die Höhe.",
        "Ik weet het niet.",
        "Ни один источник не указывает высоту.",
        "The height could not be found; the page on it [1] does not give it.",
        "Neither when Ines Dahl was born nor how tall the lighthouse is could be found.",
        "I could not find Mr. Holm's telephone number.",
        "**The sources do not say who built her.**",
        "Final answer: I do not know.",
        "Die Unterlagen nennen ihre Werft nicht.",
        "Aus dem Text geht nicht hervor, wann sie geboren wurde.",
        "Dazu konnte ich nichts finden [1].\n\nQuellen:\n[1] " + "Ein langer Titel, " * 60 + "corpus:a.md",
        "I found nothing on this [1].\n\nReferences:\n[1] " + "A long title, " * 60 + "corpus:a.md",
        "La réponse ne se trouve pas dans le texte.",
        "Lo siento, pero no puedo responder a esa pregunta.",
        "Purtroppo non posso rispondere a questa domanda.",
        "As fontes não mencionam o preço.",
        "Er is onvoldoende informatie om de vraag te beantwoorden.",
        "К сожалению, я не нашёл информации о высоте маяка.",
        "根据提供的文本,无法确定她的出生年份。",
        "抱歉,我没有这方面的数据。",
        "資料からは判断できません。",
        "문서에는 가격이 언급되어 있지 않습니다.",
        "ไม่ทราบ",
        "I looked , but I could not find it.",
        "I looked -  but I could not find it.",
        "I looked.\n  But I could not find it.",
        "I do not know J... I could not find him in the documents.",
    ]:
        assert declines(text)


def test_an_answer_does_not() -> None:
    for text in [
        "",
        "42",
        "None",
        "NA",
        "N/A",
        "Unknown",
        "unknown",
        "Impossible",
        "NOT ENOUGH INFO",
        "It cannot be determined.",
        "The area cannot be determined from the given data: it cannot be determined.",
        "Not Found",
        "I Can't Get No Satisfaction",
        "I can't say enough good things about it: 42.",
        "I don't know is on third base.",
        "None of the three kings came home.",
        "No source of the river lies in Tibet.",
        "No article of the treaty names a king.",
        "No document states a higher price than 7 crowns.",
        "No page gives more than one recipe.",
        "Keine Quelle des Flusses liegt in Tibet.",
        "Keine Quelle nennt einen höheren Preis als 7 Kronen.",
        "Nobody knows who wrote it; most scholars name Homer.",
        "The committee found nothing wrong with it.",
        "The police could not find him.",
        "The thief could not be found.",
        "No cure was found for the disease.",
        "No information can travel faster than light.",
        "An unknown master painted it.",
        "The documents do not say so, but her plate does: the Holm yard built her.",
        "The documents do not say who built her. They say that she was scrapped in 1978 [1].",
        "Nothing was found that says that she sank: she was still sailing in 2022 [2, 4]. Perhaps you mean the Gannet.",
        "The MV Gannet, built by Holm & Daughters in Kvistad [1, 3]. Nothing was found on her captain.",
        "A second breach costs 40 euros; the documents do not say when it is due.",
        "Die Unterlagen nennen sie nicht, aber auf dem Schild steht: Holm.",
        "Die Kommission konnte die Ursache nicht ermitteln.",
        "It is impossible to divide by zero.",
        "La policía no encontró al ladrón.",
        "Nessuno lo sa.",
        "Полиция не нашла преступника.",
        "警方未找到凶手。",
        "文远桥建成于1748年 [5]。2009年以后的维修费用未找到。",
        "誰にもわかりません。",
        "아무도 모릅니다.",
        "I do not know of a better book than this one, " + "which tells the whole story from its beginning. " * 12,
    ]:
        assert not declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "ich kann " + "kein " * 24 + "\u3316" * 470,
        "ik kan " + "geen " * 24 + "a" * 470,
        "\u333b" * 200 + "\u89e6\u308c" * 150 + "\u3316" * 100,
        "\u8cc7\u6599" * 100 + "\u542b\u307e" * 100 + "\u306a\u3044" * 99,
        "_ " * 50_000,
    ],
)
def test_no_text_holds_the_event_loop(text: str) -> None:
    declines("I do not know.")  # makes the patterns
    began = time.process_time()
    declines(text)
    assert time.process_time() - began < 0.1
