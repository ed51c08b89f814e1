"""Sentences that their passage supports, and the same sentences altered by rule, so that it no longer does.

The sentences are gold ones: those that the annotators of HotpotQA marked as supporting facts, and those of XQuAD's
paragraphs that hold the answer to a question. XQuAD's questions have the same order in all languages: an answer is a
name, in a language without capitals too, if it is in capitals in English.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bench.locomo import rows
from reflective_agents.text.sentences import split

LANGUAGES = {"en": "English", "de": "German", "zh": "Chinese", "th": "Thai"}
EACH = 10
"""Altered sentences of each kind in each language."""
SHOWN = 2
"""Passages that are shown with a sentence: its own, and neighbours."""
SUPPORTED = {
    "supported": "supported, as it stands",
    "translated": "supported, its passage in English",
    "thought": "in a model's words",
}
THOUGHTS = ("cotgt_hotpot_base_gpt4", "reflexion_hotpot_cotgt_gpt35", "reflexion_hotpot_cotgt_davinci003")
"""Files of what models thought when they were shown the gold paragraphs of HotpotQA."""
LENGTHS = {"en": (40, 300), "de": (40, 300), "zh": (15, 120), "th": (40, 300)}
"""Fewest and most characters of a sentence."""
NEGATIONS = {
    "en": (r"\b(?:is|are|was|were|has|have|had|can|could|will|would)\b(?! not\b|n't)", r"\g<0> not"),
    "de": (r"\b(?:ist|sind|war|waren|wurde|wurden|hat|hatte|kann|konnte|wird)\b(?! nicht\b)", r"\g<0> nicht"),
    "zh": (r"(?<![但于就还或总正也都而可不凡要像])是(?!否)|(?<!不)(?:位于|可以|包括|属于|代表)", r"并不\g<0>"),
    "th": (r"(?<!จำ)(?<!ไม่)เป็น(?!ต้น)|(?<!ไม่)ได้รับ|(?<!ไม่)สามารถ", r"ไม่\g<0>"),
}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_THAI_END = re.compile(r"\s{2,}")


class Page(NamedTuple):
    """A passage.

    Attributes:
        language: A key of `LANGUAGES`.
        topic: What its neighbours have in common with it.
        text: The passage.
        english: The passage in English.
        names: Names in it.
        facts: Questions, each with the sentence that answers it.
    """

    language: str
    topic: str
    text: str
    english: str
    names: Sequence[str]
    facts: Sequence[tuple[str, str]]


class Claim(NamedTuple):
    """A sentence as the answer to a question, with the number of the passage that it cites, counted from 1.

    Attributes:
        language: A key of `LANGUAGES`.
        kind: One of `SUPPORTED`, or how it was altered: a key of `ALTERED`.
    """

    language: str
    kind: str
    question: str
    sentence: str
    passages: Sequence[str]
    cited: int

    @property
    def supported(self) -> bool:
        """Whether the passage it cites says so."""
        return self.kind in SUPPORTED

    @property
    def answer(self) -> str:
        """The sentence with its citation."""
        return f"{self.sentence} [{self.cited}]"


def read_pages(folder: Path) -> dict[str, list[Page]]:
    """Read the pages of each set in a folder: HotpotQA with its distractors, XQuAD in four languages."""
    english = [*rows(folder / "xquad_en.dev.jsonl.gz")]
    questions = rows(folder / "bench_hotpot100_distractor.dev.jsonl.gz")
    sets = {"hotpot": list(chain.from_iterable(map(hotpot, questions)))}
    for language in LANGUAGES:
        translated = rows(folder / f"xquad_{language}.dev.jsonl.gz")
        sets[language] = [xquad(language, row, same) for row, same in zip(translated, english, strict=True)]
    return sets


def hotpot(row: Mapping[str, Any]) -> Iterator[Page]:
    """Yield the paragraphs around a question of HotpotQA; titles are the names in them."""
    titles = [title.partition(" (")[0] for title, _ in row["context"]]
    for title, sentences in row["context"]:
        text = "".join(sentences)
        facts: list[tuple[str, str]] = []
        for of, index in row["supporting_facts"]:
            if of == title and index < len(sentences):
                facts.append((row["question"], sentences[index].strip()))
        names = [name for name in (*titles, row["gold"]) if name[:1].isupper() and _holds(text, name)]
        yield Page("en", row["id"], text, text, names, facts)


def xquad(language: str, row: Mapping[str, Any], english: Mapping[str, Any]) -> Page:
    """Return a paragraph of XQuAD; names are the answers that are capitalised in English."""
    text, names, facts = row["text"].strip("\ufeff \n"), [], []
    sentences = _THAI_END.split(text) if language == "th" else split(text)
    for question, same in zip(row["questions"], english["questions"], strict=True):
        answer, original = question["answers"][0].strip(" .。"), same["answers"][0].strip(" .")
        if re.search(rf"[a-z,] (?=[A-Z]){re.escape(original)}", english["text"]) and not re.search(r"\d", original):
            names.append(answer)
        facts += [(question["question"], sentence) for sentence in sentences if answer in sentence][:1]
    return Page(language, row["title"], text, english["text"], names, facts)


def thoughts(folder: Path) -> Iterator[Claim]:
    """Yield the sentences that models thought before their first answer, where it was right, with the gold paragraphs
    as one passage."""
    questions = {row["question"]: row for row in rows(folder / "bench_hotpot100_distractor.dev.jsonl.gz")}
    for row in chain.from_iterable(rows(folder / f"{name}.dev.jsonl.gz") for name in THOUGHTS):
        if row["verdict"][0]["status"] == "correct":
            question = questions[row["task"]["question"]]
            gold = dict(question["supporting_facts"])
            passage = "\n".join(f"{title}: {''.join(text)}" for title, text in question["context"] if title in gold)
            thought = next(each["text"] for each in row["outputs"] if each["role"] == "thought")
            for sentence in split(thought):
                yield Claim("en", "thought", question["question"], sentence, [passage], 1)


def claims(sets: Mapping[str, Sequence[Page]], each: int = EACH) -> Iterator[Claim]:
    """Yield sentences as they stand, each also with its passage in English, and altered in one of the ways.

    Args:
        sets: Pages by the name of their set; a language with several sets takes as many sentences from each.
        each: Sentences of each language for each way to alter them.
    """
    languages = [pages[0].language for pages in sets.values()]
    for name, pages in sets.items():
        share = each // languages.count(pages[0].language)
        used: set[str] = set()
        for kind in ALTERED:
            left = share
            for variants in altered(name, pages, kind):
                if not left:
                    break
                if variants[0].sentence not in used:
                    used.add(variants[0].sentence)
                    left -= 1
                    yield from variants


def altered(name: str, pages: Sequence[Page], kind: str) -> Iterator[list[Claim]]:
    """Yield the variants of the sentences that can be altered in a way, in an order drawn with a fixed seed."""
    chance = random.Random(f"{kind} in {name}")
    facts = [(page, question, sentence) for page in pages for question, sentence in page.facts]
    for page, question, sentence in chance.sample(facts, len(facts)):
        shortest, longest = LENGTHS[page.language]
        changed = ALTERED[kind](page, sentence, pages, chance)
        if changed and shortest <= len(sentence) <= longest and "\n" not in sentence:
            shown = [page, *neighbours(page, pages, SHOWN - 1)]
            chance.shuffle(shown)
            own = shown.index(page) + 1
            other = own if changed != sentence else own % len(shown) + 1
            claim = Claim(page.language, "supported", question, sentence, [each.text for each in shown], own)
            made = [claim, claim._replace(kind=kind, sentence=changed, cited=other)]
            if page.text != page.english:
                made.append(claim._replace(kind="translated", passages=[each.english for each in shown]))
            yield made


def neighbours(page: Page, pages: Sequence[Page], count: int) -> list[Page]:
    """Return passages on the same topic, or else those that follow."""
    position = pages.index(page)
    others = [*pages[position + 1 :], *pages[:position]]
    return sorted(others, key=lambda other: other.topic != page.topic)[:count]


# Alterations: each returns the altered sentence, or nothing where it does not fit

Alteration = Callable[[Page, str, Sequence[Page], random.Random], str]


def another_number(page: Page, sentence: str, pages: Sequence[Page], chance: random.Random) -> str:
    """Replace a number by one of the same form from another passage."""
    others: set[str] = set()
    for other in pages:
        if other.topic != page.topic:
            others.update(_NUMBER.findall(other.text))
    others -= set(_NUMBER.findall(page.text))
    return _replaced(sentence, _NUMBER.findall(sentence), others, chance, lambda number: re.sub(r"\d", "0", number))


def another_name(page: Page, sentence: str, pages: Sequence[Page], chance: random.Random) -> str:
    """Replace a name by one from another passage."""
    others: set[str] = set()
    for other in pages:
        if other.topic != page.topic:
            others.update(name for name in other.names if name not in page.text)
    return _replaced(sentence, page.names, others, chance)


def swapped_name(page: Page, sentence: str, pages: Sequence[Page], chance: random.Random) -> str:
    """Replace a name by another one of the same passage."""
    return _replaced(sentence, page.names, {name for name in page.names if name not in sentence}, chance)


def negated(page: Page, sentence: str, pages: Sequence[Page], chance: random.Random) -> str:
    """Negate the first verb that the language's rule covers."""
    pattern, replacement = NEGATIONS[page.language]
    altered = re.sub(pattern, replacement, sentence, count=1)
    return altered if altered != sentence else ""


def neighbour_cited(page: Page, sentence: str, pages: Sequence[Page], chance: random.Random) -> str:
    """Leave the sentence as it is: what changes is the passage that it cites."""
    return sentence


ALTERED: Mapping[str, Alteration] = {
    "swapped name": swapped_name,
    "name": another_name,
    "number": another_number,
    "negation": negated,
    "citation": neighbour_cited,
}


def _replaced(
    sentence: str, old: Sequence[str], new: Iterable[str], chance: random.Random, form: Callable[[str], Any] = bool
) -> str:
    """Replace one of the old words by a new one of the same form, which is no part of it, nor it of that."""
    known = sorted(new)
    for word in chance.sample(old, len(old)):
        fitting = [other for other in known if form(other) == form(word) and other not in word and word not in other]
        if fitting and _holds(sentence, word):
            return chance.choice(fitting).join(re.split(_whole(word), sentence))
    return ""


def _whole(word: str) -> str:
    """Return a pattern of a word that is not a part of another one, where the script has blanks."""
    return rf"(?<!\w){re.escape(word)}(?!\w)" if word.isascii() else re.escape(word)


def _holds(text: str, word: str) -> bool:
    return re.search(_whole(word), text) is not None
