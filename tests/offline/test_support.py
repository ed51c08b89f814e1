"""The offline model as a checker: what stands in a passage word by word is supported, and nothing else."""

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.support import SupportCheck, assess, is_verified, read_sentences, support_prompt
from reflective_agents.offline.model import OfflineChatModel

PAGES = {"1": "Tides are made by the moon. The sun has a part in them.", "2": "Sand is made of quartz."}


def checked(answer: str, question: str = "What are tides made by?") -> tuple[list[str], str, bool]:
    sentences = read_sentences(answer, PAGES)
    prompt = support_prompt(quoted("request", question), sentences, PAGES)
    form = OfflineChatModel().with_structured_output(SupportCheck).invoke(prompt)
    assert isinstance(form, SupportCheck)
    support = assess(sentences, form, PAGES)
    return [sentence["support"] for sentence in support["sentences"]], form.answered, is_verified(support)


def test_copied_sentences_are_supported_by_the_passage_that_they_cite() -> None:
    assert checked("Tides are made by the moon [1].") == (["full"], "yes", True)
    assert checked("Tides are made by the moon [2].") == (["none"], "yes", False)


def test_altered_sentences_are_not() -> None:
    assert checked("Tides are made by the wind [1].")[0] in (["part"], ["none"])
    assert not checked("Tides are never made by the moon [1].")[2]


def test_what_it_says_of_its_own_answer_is_no_fact() -> None:
    levels, answered, _ = checked("Sand is made of quartz [2]. Not covered by what was found: tides.")
    assert (levels, answered) == (["full", "no_fact"], "partly")


def test_nothing_found_is_no_answer() -> None:
    answer = "This is an offline extractive model, and it found nothing to answer this from."
    assert checked(answer) == (["no_fact"], "no", False)
