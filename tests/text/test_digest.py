"""A summary without a model."""

from reflective_agents.text.digest import digest
from reflective_agents.text.words import cut

TALK = "Hello there. My dog is called Rex and he was born on 3 May 2021. That is nice, is it not. We go on and on."


def test_what_says_most_is_kept_as_it_is() -> None:
    assert digest([TALK], 14) == "My dog is called Rex and he was born on 3 May 2021."
    assert len(cut(digest([TALK] * 3, 20))) <= 20


def test_chinese_is_summarised() -> None:
    assert "2021" in digest(["你好。我的狗叫小白，生于2021年5月3日。好的。"], 20)
