"""The language of a run: everything that it writes follows the question, or `language=`; labels are read in both."""

import json
import re
from typing import Any, NamedTuple

import pytest

from reflective_agents.testing.fake import FakeChatModel
from tests.strategies import Strategy, every_strategy


class Language(NamedTuple):
    """A question, and what the model says in its language instead of English: phrases and labels."""

    name: str
    question: str
    phrases: tuple[str, ...]
    answer: str
    full_name: str


ENGLISH = (
    "eflection finds mistakes",
    "Too short",
    "Not yet",
    "Look for more evidence",
    "Evidence",
    "Revision",
    "thinks",
    "Now we can answer the question",
)
CHINESE = Language(
    "Chinese",
    "为什么反思有帮助？ [alpha]",
    ("反思能发现错误", "太短", "还没有", "寻找更多证据", "证据", "修订", "思考", "现在我们可以回答这个问题"),
    "答案：",
    "simplified Chinese",
)
GERMAN = Language(
    "German",
    "Warum hilft Nachdenken beim Lernen? [alpha]",
    (
        "Nachdenken findet Fehler",
        "Zu kurz",
        "Noch nicht",
        "Suche mehr Belege",
        "Belege",
        "Fassung",
        "denkt",
        "Jetzt können wir die Frage beantworten",
    ),
    "Antwort:",
    'the language of "Warum hilft Nachdenken beim Lernen? [alpha]"',
)
THAI = Language(
    "Thai",
    "ทำไมการทบทวนจึงช่วยได้ [alpha]",
    ("การทบทวนพบข้อผิดพลาด", "สั้นเกินไป", "ยังไม่ใช่", "หาหลักฐานเพิ่ม", "หลักฐาน", "ฉบับแก้ไข", "คิด", "ตอนนี้เราสามารถตอบคำถามได้"),
    "คำตอบ:",
    "Thai",
)
LANGUAGES = (CHINESE, GERMAN, THAI)


def writer(strategy: Strategy, language: Language) -> FakeChatModel:
    """A model that serves the strategy well, and writes in a language."""
    return FakeChatModel(reply=lambda request: _translated(strategy.solving(request), language))


def _translated(reply: Any, language: Language) -> Any:
    if isinstance(reply, dict):
        return {name: _translated(value, language) for name, value in reply.items()}
    if isinstance(reply, list):
        return [_translated(value, language) for value in reply]
    if not isinstance(reply, str):
        return reply
    for english, phrase in zip(ENGLISH, language.phrases, strict=True):
        reply = re.sub(rf"\b\w?{english}" if english[0] == "e" else english, phrase, reply)
    return reply.replace("Answer:", language.answer)


def assert_written(
    strategy: Strategy, result: dict[str, Any], model: FakeChatModel, language: Language, expected: str
) -> None:
    """Every request has said in which language to write, and what was written is read."""
    assert result["outcome"]["status"] == strategy.status
    assert [request.text for request in model.calls if expected not in request.messages[0].text] == []
    assert any(phrase in json.dumps(result, default=str, ensure_ascii=False) for phrase in language.phrases)
    assert language.answer not in result["answer"]


@pytest.mark.matrix(over="strategy")
@every_strategy
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
async def test_everything_that_is_written_follows_the_question(strategy: Strategy, language: Language) -> None:
    model = writer(strategy, language)
    given = {"messages": [("user", language.question)]}
    result = await strategy.graph.ainvoke(given, context=strategy.make(model=model))
    assert_written(strategy, result, model, language, f"Write in {language.full_name};")


@every_strategy
async def test_a_language_that_is_set_overrides_that_of_the_question(strategy: Strategy) -> None:
    model = writer(strategy, GERMAN)
    context = strategy.make(model=model, language="German")
    result = await strategy.graph.ainvoke({"messages": [("user", CHINESE.question)]}, context=context)
    assert_written(strategy, result, model, GERMAN, "Write in German;")
