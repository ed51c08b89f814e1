"""Labels, answers, judgements and list markers, in the forms in which models write them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.text.labels import answer_in, bare, label_of, last_word, sections, without_marker


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("**Answer: 413**", "413"),
        ("**Answer:** 413", "413"),
        ("__Answer__: 413", "413"),
        ("Answer：413", "413"),
        ("- Final Answer: `413`", "413"),
        ("1. Answer: 413", "413"),
        ("## Answer: 413", "413"),
        ("> **Final Answer**: 413", "413"),
        ("Answer:\n\n413", "413"),
        ("So.\n**Answer**\n413", "413"),
        ("(Answer: 413)", "413"),
        ("<Answer: 413>", "413"),
        ("**<Final Answer: 413>**", "413"),
        ("<answer>413</answer>", "413"),
        ("<final_answer>\n413\n</final_answer>", "413"),
        ("[Final Answer: 413]", "413"),
        ("[Answer] 413", "413"),
        ("【答案】413", "413"),
        ("<回答：413>", "413"),
        ("Answer: a -> b ->", "a -> b ->"),
        ("Answer: <b>413</b>", "<b>413</b>"),
        ("Answer: [4, 13]", "[4, 13]"),
        ("Answer 413", None),
        ("Answer: \\boxed{413}", "413"),
        ("So it is $\\boxed{413}$.", "413"),
        ("The answer is 413.", "413"),
        ("The answer to this problem is 413.\n\nThank you.", "413"),
        ("So the answer: 413", "413"),
        ("#### 413", "413"),
        ("#### 411\nThe answer is: 413", "413"),
        ("答案：北京", "北京"),
        ("最终答案: 北京", "北京"),
        ("答案是北京。", "北京"),
        ("Antwort: Berlin", "Berlin"),
        ("Also: die Antwort lautet Berlin.", "Berlin"),
        ("คำตอบ: 48", "48"),
        (unicodedata.normalize("NFKC", "คำตอบ: 48"), "48"),
        ("So. The answer:\n48", "48"),
        ("Answer: Lyon? No.\nAnswer: Paris\nThat is it.", "Paris"),
        ("Answer: the river *Elbe*", "the river *Elbe*"),
        ("Answer:", ""),
        ("The answer to the question of what is a tide.", None),
        ("The question is 4.", None),
        ("Answering takes time.", None),
        ("", None),
    ],
)
def test_the_answer_that_a_text_names(text: str, answer: str | None) -> None:
    assert answer_in(text) == answer


def test_a_judgement_is_the_word_of_the_last_line() -> None:
    for text, word in [
        ("sure", "sure"),
        ("10 + 14 = 24\nsure", "sure"),
        ("**sure**", "sure"),
        ("sure.", "sure"),
        ("- likely", "likely"),
        ("1. sure", "sure"),
        ("`impossible`", "impossible"),
        ("Evaluation: **sure**", "sure"),
        ("结论：sure", "sure"),
        ("ｓｕｒｅ", "sure"),
        ("sure (it can be reached)", "sure"),
        ("**sure** (it can be reached)", "sure"),
        ("sure - it can be reached", "sure"),
        ("`impossible`: nothing is left", "impossible"),
        ("likely, but not sure", "likely"),
        ("6 * 4 = 24. sure", "sure"),
        ("6 * 4 = 24 => sure", "sure"),
        ("Likely? No: impossible.", ""),
        ("impossible to say", ""),
        ("sure-footed", ""),
        ("unsure. unlikely", ""),
        ("It is not sure", ""),
        ("unlikely", ""),
        ("sure\nBut perhaps not.", ""),
        ("sure or likely", ""),
        ("", ""),
        ("It can.\nsure (it can be reached)", "sure"),
        ("**Impossible** (it cannot be)", "impossible"),
        ("likely - it may be", "likely"),
        ("not sure (it may be)", ""),
    ]:
        assert last_word(text, ["sure", "likely", "impossible"]) == word


def test_markers_of_lists_are_stripped_and_numbers_are_not() -> None:
    for line, proposal in [
        ("1. 4 + 9 = 13 (left: 10 13 13)", "4 + 9 = 13 (left: 10 13 13)"),
        ("2) h1. ocean", "h1. ocean"),
        ("(3) look", "look"),
        ("- look", "look"),
        ("* look", "look"),
        ("• look", "look"),
        ("### look", "look"),
        ("１．look", "look"),
        ("**look**", "look"),
        ("- **look**", "look"),
        ("h1. ocean", "h1. ocean"),
        ("10 - 4 = 6 (left: 6)", "10 - 4 = 6 (left: 6)"),
        ("-3 + 4 = 1", "-3 + 4 = 1"),
        ("3.5 + 2", "3.5 + 2"),
        ("   ", ""),
    ]:
        assert without_marker(line) == proposal


def test_the_label_of_a_line() -> None:
    for line, label, value in [
        ("Action 12 : Search[x]", "action", "Search[x]"),
        ("**Action 5:** calculator[2]", "action", "calculator[2]"),
        ("### Action 2", "action", ""),
        ("Action Input: x", "input", "x"),
        ("## Action 2:", "action", ""),
        ("<Action 2> x", "action", "x"),
        ("【行动】x", "action", "x"),
        ("Action_Input: x", "input", "x"),
        ("行动：search[北京]", "action", "search[北京]"),
        ("Beobachtung 3: x", "observation", "x"),
        ("ความคิด: x", "thought", "x"),
    ]:
        found = label_of(line)
        assert found is not None
        assert (found[0], line[found[1] :].strip()) == (label, value)


@pytest.mark.parametrize("line", ["Actionable: x", "The Action: was taken", "Action", "Action> x", "", "x: y"])
def test_a_line_without_a_label(line: str) -> None:
    assert label_of(line) is None


@given(st.text())
def test_the_sections_of_a_text_do_not_overlap(text: str) -> None:
    parts = list(sections(text))
    assert [part.start for part in parts] == sorted(part.start for part in parts)
    assert all(part.start <= part.begin for part in parts)


@given(st.text(alphabet="*_`\"' ()a1.-#\n:"))
def test_no_text_raises_and_nothing_is_made_up(text: str) -> None:
    for read in (answer_in, bare, without_marker):
        value = read(text)
        assert value is None or set(value) <= set(text)
    assert last_word(text, ["a"]) in ("", "a")


def test_a_fence_around_a_text_is_stripped_and_a_program_stays_one() -> None:
    for text, value in [
        ("```\n42\n```", "42"),
        ("(0, 1]", "(0, 1]"),
        ("[0, 1)", "[0, 1)"),
        ("42\n```", "42"),
        ("```json\n42", "42"),
        ("```42```", "42"),
        ("```", ""),
        ("```text", ""),
        ("```python\nx = 1\n```", "```python\nx = 1\n```"),
        ("so ```x``` says", "so ```x``` says"),
    ]:
        assert bare(text) == value
