"""Whether the passages that an answer cites support it, sentence by sentence: what code can say of it before a model is
asked, the form that the model fills in, and what follows from that. Pure functions; `verifying` asks the model.

    sentences = read_sentences(answer, passages)
    prompt = support_prompt(request_text, sentences, passages)
    support = assess(sentences, form, passages)
    support["answered"], unsupported(support), is_verified(support)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, inf
from typing import NamedTuple

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, Field

from reflective_agents.models.costs import estimate_tokens
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.marks import cited_sentences
from reflective_agents.nodes.evidence.quotations import missing_in, stands_in
from reflective_agents.prompts import search as search_prompts
from reflective_agents.prompts import support as prompts
from reflective_agents.state.schemas import Truth, one_of
from reflective_agents.state.support import Answered, Level, Support, SupportedSentence
from reflective_agents.text.excerpt import excerpt
from reflective_agents.text.words import count_words

MOST_SENTENCES = 40
"""Sentences of an answer that can be checked in one form."""
MOST_CHARACTERS = 40_000
"""Characters of all passages that the checker is shown."""
FEWEST_CHARACTERS = 1_000
"""The same where it is asked of a model with a small context."""
SHORTER = 0.9
"""Share of these characters that is tried next, at most, where a prompt is too long."""
FEWEST_WORDS = 3
"""Words that have to be quoted for a sentence; a third of its own, if those are fewer."""
LONGEST_PASSAGE = 8_000
"""Characters of one of them."""
LONGEST_EXCERPT = 100
"""Characters of a sentence where it is named."""
Passages = Mapping[str, str]
"""What the model has read, by the marks that cite it, such as "1"; empty for what can support nothing: read for an
earlier answer of the thread, and no longer at hand, or said by the assistant itself."""


class Sentence(NamedTuple):
    """A sentence of an answer: its text without marks, the passages that it cites, what code did not find there, and
    where it stands in the answer, marks included."""

    number: int
    text: str
    cites: tuple[str, ...]
    flags: tuple[str, ...]
    begin: int
    end: int


class SentenceCheck(BaseModel):
    """Your check of one sentence."""

    number: int = Field(description="The number of the sentence.")
    fact: Truth = Field(description="Whether it states a fact.")
    words: str = Field(description="The words of the passages it cites that state it, copied. Empty if there are none.")
    support: one_of(("full", "part", "none")) = Field(  # type: ignore[valid-type]
        description="How far the passages it cites support it."
    )


class SupportCheck(BaseModel):
    """Your check of the answer against its sources."""

    sentences: list[SentenceCheck] = Field(description="One check for each sentence, in order.")
    answered: one_of(("yes", "partly", "no")) = Field(  # type: ignore[valid-type]
        description="Whether the answer answers the request."
    )


def read_sentences(answer: str, passages: Passages) -> list[Sentence]:
    """Split an answer into its sentences, each with the passages that it cites; code is none, nor is a heading
    that cites nothing.

    Where they are too many for a check, code says nothing of them either.
    """
    first, *_ = passages or [""]
    letter = "".join(filter(str.isalpha, first))
    known = [int(mark.removeprefix(letter)) for mark in passages]
    cited = cited_sentences(answer, known, letter)
    sentences: list[Sentence] = []
    for number, (text, sources, begin, end) in enumerate(cited, 1):
        cites = tuple(f"{letter}{source}" for source in sources)
        read = [passages[mark] for mark in cites if passages[mark]]
        flags = missing_in(read, text) if read and len(cited) <= MOST_SENTENCES else []
        end = begin + len(answer[begin:end].rstrip())  # the blanks after it stay where it is written anew
        sentences.append(Sentence(number, text, cites, tuple(flags), begin, end))
    return sentences


def flags_text(answer: str, passages: Passages) -> str:
    """Say which numbers and names of an answer's sentences stand in none of the passages that these cite, as a fact for
    its judge; empty if there are none."""
    facts: list[str] = []
    for sentence in read_sentences(answer, passages):
        if sentence.flags:
            missing = ", ".join(sentence.flags)
            facts.append(f'{missing} ("{sentence.text:.{LONGEST_EXCERPT}}")')
    return search_prompts.FLAGGED.format(facts="; ".join(facts)) if facts else ""


def cited_marks(sentences: Iterable[Sentence]) -> set[str]:
    """Return the marks of the sources that sentences cite."""
    marks = set[str]()
    for sentence in sentences:
        marks.update(sentence.cites)
    return marks


def shown_passages(passages: Passages, sentences: Sequence[Sentence], most: int = MOST_CHARACTERS) -> dict[str, str]:
    """Return the passages that a checker is shown, of so many characters at most: those that the sentences cite, and as
    many others as fit beside them; of a long one what bears on the sentences."""
    cited = cited_marks(sentences)
    wanted = " ".join(sentence.text for sentence in sentences)
    shown: dict[str, str] = {}
    left = most
    for mark in sorted(passages, key=lambda mark: mark not in cited):
        if text := excerpt(passages[mark], min(LONGEST_PASSAGE, left), wanted):
            shown[mark] = text
            left -= len(text)
    return {mark: shown[mark] for mark in passages if mark in shown}


def support_prompt(
    request: str, sentences: Sequence[Sentence], passages: Passages, longest: float = inf
) -> list[BaseMessage]:
    """Build the prompt for the check.

    Args:
        request: What was asked, quoted already.
        sentences: Those of the answer.
        passages: What the model has read.
        longest: Most estimated tokens of the prompt, to which passages are left out.
    """
    shown = "\n".join(map(_shown, sentences))

    def build(most: int) -> list[BaseMessage]:
        quotations = _quoted(passages, sentences, most)
        return prompts.CHECK.format_messages(request=request, passages=quotations, sentences=shown)

    return _fitting(build, longest)


def revision_prompt(
    request: str, sentences: Sequence[Sentence], support: Support, passages: Passages, longest: float = inf
) -> list[BaseMessage]:
    """Build the prompt for new words of the sentences that are not supported, and of no others.

    Args:
        request: What was asked, quoted already.
        sentences: Those of the answer.
        support: What the check has brought of them.
        passages: What the model has read.
        longest: Most estimated tokens of the prompt, to which passages are left out.
    """
    shown = "\n".join(map(_shown, sentences))
    wrong: list[str] = []
    for sentence, assessed in to_revise(sentences, support, passages):
        wrong.append(f"{sentence.number}: {prompts.FAULTS[assessed['support']]}")

    def build(most: int) -> list[BaseMessage]:
        return prompts.REVISE.format_messages(
            request=request,
            passages=_quoted(passages, sentences, most),
            sentences=shown,
            wrong=quoted("checked", "\n".join(wrong)),
        )

    return _fitting(build, longest)


def _fitting(build: Callable[[int], list[BaseMessage]], longest: float) -> list[BaseMessage]:
    """Build a prompt with as many characters of passages as leave it no longer than `longest`, but never next to
    none."""
    most = MOST_CHARACTERS
    prompt = build(most)
    while most > FEWEST_CHARACTERS and (length := estimate_tokens(prompt, {})) > longest:
        most = max(int(most * min(longest / length, SHORTER)), FEWEST_CHARACTERS)
        prompt = build(most)
    return prompt


def _quoted(passages: Passages, sentences: Sequence[Sentence], most: int) -> str:
    shown = shown_passages(passages, sentences, most)
    return "\n".join(quoted("passage", text, number=mark) for mark, text in shown.items())


def _shown(sentence: Sentence) -> str:
    check = {"check": ", ".join(sentence.flags)} if sentence.flags else {}
    cites = ", ".join(sentence.cites) or "nothing"
    return quoted("sentence", sentence.text, number=sentence.number, cites=cites, **check)


def assess(
    sentences: Sequence[Sentence], form: SupportCheck, passages: Passages, without_passage: Level = "unseen"
) -> Support:
    """Hold a form against the answer and its passages: what is called supported has to be quoted from them.

    Args:
        sentences: Those of the answer.
        form: What the checker says of them.
        passages: What they can cite.
        without_passage: What a sentence is that cites only marks without a passage.
    """
    checks = {check.number: check for check in form.sentences}
    assessed = []
    for sentence in sentences:
        level, words = _level(sentence, checks.get(sentence.number), passages, without_passage)
        assessed.append(SupportedSentence(text=sentence.text, cites=[*sentence.cites], support=level, words=words))
    answered: Answered = form.answered
    return Support(answered=answered, sentences=assessed, left_out="")


def _level(
    sentence: Sentence, check: SentenceCheck | None, passages: Passages, without_passage: Level
) -> tuple[Level, str]:
    if sentence.cites and not any(passages[mark] for mark in sentence.cites):
        return without_passage, ""
    if check is None:
        return "unchecked", ""
    if not sentence.cites:
        return ("uncited", check.words) if check.fact else ("no_fact", "")
    if check.support == "full" and not _is_quoted(sentence, check.words, passages):
        return "misquoted", check.words
    # What the checker was not shown may support it all the same.
    if check.support != "full" and not _is_read(sentence, passages):
        return "unchecked", ""
    return check.support, check.words


def _is_read(sentence: Sentence, passages: Passages) -> bool:
    """Tell whether the model has read all that a sentence cites: what an earlier answer cites may be known by its
    address alone."""
    return all(passages[mark] for mark in sentence.cites)


def _is_quoted(sentence: Sentence, words: str, passages: Passages) -> bool:
    """Tell whether words stand in the passages that a sentence cites, and are enough to state it."""
    enough = min(FEWEST_WORDS, ceil(count_words(sentence.text) / 3))
    cited = [passages[mark] for mark in sentence.cites]
    return count_words(words) >= enough and stands_in(cited, words)


def unsupported(support: Support) -> list[SupportedSentence]:
    """Return the sentences of fact that their passages do not fully support."""
    return [sentence for sentence in support["sentences"] if sentence["support"] not in ("full", "no_fact")]


def to_revise(
    sentences: Sequence[Sentence], support: Support, passages: Passages
) -> list[tuple[Sentence, SupportedSentence]]:
    """Return the sentences that are not supported, with what was found; without those that nobody can check."""
    missing = unsupported(support)
    pairs: list[tuple[Sentence, SupportedSentence]] = []
    for sentence, assessed in zip(sentences, support["sentences"], strict=True):
        if assessed in missing and _is_read(sentence, passages):
            pairs.append((sentence, assessed))
    return pairs


def is_verified(support: Support) -> bool:
    """Tell whether an answer is verified: it answers the request, and all facts that it states are fully supported."""
    states_facts = any(sentence["support"] == "full" for sentence in support["sentences"])
    return support["answered"] == "yes" and states_facts and not unsupported(support)
