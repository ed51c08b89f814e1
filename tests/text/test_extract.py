"""What the offline model reads out of texts, in any script."""

import pytest

from reflective_agents.text.extract import Passage, rank, terms
from reflective_agents.text.sentences import split


def best(question: str, content: str) -> str:
    ranked = rank([Passage("", "", content)], terms(question))
    return max(ranked, key=lambda sentence: sentence.score).text


def test_a_question_finds_its_sentence_in_chinese_and_thai() -> None:
    text = "张三在北京卖面包。他的妹妹住在上海的一座老房子里。他们每年冬天见面。"
    assert best("谁住在上海?", text) == "他的妹妹住在上海的一座老房子里。"
    text = "แม่น้ำเจ้าพระยาไหลผ่านกรุงเทพ\n\nเชียงใหม่อยู่ทางเหนือของประเทศไทย"
    assert best("เชียงใหม่อยู่ที่ไหน", text) == "เชียงใหม่อยู่ทางเหนือของประเทศไทย"


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("潮汐是什么造成的？", ["潮汐", "汐是", "造成", "成的"]),
        ("潮汐是什麼造成的？", ["潮汐", "汐是", "造成", "成的"]),
        ("哪吒是谁？", ["哪吒", "吒是"]),
        ("你吃了吗？", ["你吃", "吃了"]),
        ("许多大学在哪里？", ["许多", "多大", "大学", "学在"]),
        ("楼有多高？", ["楼有"]),
        ("它為什麼重要呢？", ["它", "重要"]),
        ("哪個城市最大？", ["城市", "市最", "最大"]),
        ("日志保留多少天？", ["日志", "志保", "保留"]),
        ("修改之后要做什么？", ["修改"]),
        ("两次高潮相隔多久？", ["两次", "次高", "高潮", "潮相", "相隔"]),
    ],
)
def test_question_words_of_chinese_are_no_terms(question: str, found: list[str]) -> None:
    assert [*terms(question)] == found


def test_a_term_is_told_as_it_stood_in_the_text() -> None:
    assert dict(terms("The Reflections of Dublin, reflected")) == {"reflect": "Reflections", "dublin": "Dublin"}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Am 1. März 1979 wurde gewählt. Im 19. Jahrhundert nicht.", 2),
        ("Es kostete ca. 4 Mio. Euro. Nr. 7 war frei.", 2),
        ("There were 12. The others left.", 2),
    ],
)
def test_an_ordinal_before_a_month_or_an_abbreviation_ends_no_sentence(text: str, sentences: int) -> None:
    assert len(split(text)) == sentences
