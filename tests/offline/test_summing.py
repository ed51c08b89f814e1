"""The offline model as the one that summarises."""

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.offline import OfflineChatModel
from reflective_agents.prompts.compaction import SUMMARISE
from reflective_agents.text.words import cut

TALK = "Hello there. My dog is called Rex and he was born on 3 May 2021. That is nice, is it not. We go on and on."


def test_the_model_summarises_turns_that_it_is_shown() -> None:
    prompt = SUMMARISE.format_messages(
        summary=quoted("summary", "Ada lives in Oslo."), turns=quoted("turn", TALK, by="human"), words=30
    )
    text = OfflineChatModel().invoke(prompt).text
    assert "Ada lives in Oslo." in text
    assert "Rex" in text
    assert len(cut(text)) <= 30


def test_a_summary_in_a_prompt_is_not_summarised_again() -> None:
    prompt = [("user", quoted("summary", "Ada lives in Oslo.")), ("user", "What is 2 + 2?")]
    assert "Ada lives in Oslo." not in OfflineChatModel().invoke(prompt).text
