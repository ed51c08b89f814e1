"""What the offline model writes: answers made of sentences that were found, and queries made of the request's words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice, zip_longest

from reflective_agents.offline.evidence import REMEMBERED
from reflective_agents.offline.reading import Reading
from reflective_agents.text.extract import Sentence, sentences, terms
from reflective_agents.text.words import count_words

NOTE = "offline extractive model"
NOTHING = f"This is an {NOTE}, and it found nothing to answer this from."
COMPOSED = f"This {NOTE} has no material beyond the request."
MISSING = "Not covered by what was found: "

SENTENCES = 4
"""Sentences of an answer, unless a candidate varies it."""
VARIANTS = ((4, 0), (3, 0), (6, 0), (3, 1), (5, 1), (4, 2))
"""Length of an answer in sentences, and how many of the best ranked to pass over, for each candidate."""
COVERED = 0.75
"""Share of the request's terms that the evidence must hold before the model stops searching by itself."""
ANSWERABLE = 0.5
"""Share of the request's terms below which search results have nothing to do with it, and are no answer."""
MAX_SEARCHES = 4
"""Steps after which the model stops searching by itself, whatever is missing."""
FLOOR = 0.2
"""Share of the best rank that each sentence gets for nothing: BM25 gives a term that stands everywhere no weight."""
QUERY_WORDS = 12
"""Most terms of a query."""
_CREATIVE = re.compile(r"\b(write|compose|draft|essay|poem|story|letter|article)\b", re.I)
_DANGLING = re.compile(
    r"^(it|its|this|that|these|those|they|their|he|she|his|her|but|and|so|or|however|then|also|instead|for example|"
    r"the (?:first|second|third|last|other|former|latter|same))\b",
    re.I,
)
_DEFINITION = re.compile(r"^(?:[\w-]+,? ){1,6}?(?:is|are) (?:a|an)\b")
_LENGTH = range(5, 61)
"""Words of a sentence fit to be quoted."""


@dataclass(frozen=True)
class Written:
    """An answer: its text with citations such as [1], the URLs they point to, in order, and their numbers."""

    text: str
    references: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return the text followed by its list of references, one per line."""
        listed = "\n".join(f"[{number}] {url}" for number, url in zip(self.numbers, self.references, strict=True))
        return f"{self.text}\n\nReferences:\n{listed}" if listed else self.text


Move = Written | tuple[str, ...]
"""A step of an agent: an answer, or the queries to search for."""


def moves(reading: Reading, searching: bool) -> list[Move]:
    """Return the different next steps in order of preference: never empty, the same for the same conversation.

    Args:
        reading: the conversation.
        searching: whether there is a tool to search with.
    """
    variants = [write(reading, length, skipped) for length, skipped in VARIANTS]
    answers = list(dict.fromkeys(variants))
    new = queries(reading) if searching and reading.searches < MAX_SEARCHES else []
    steps: list[Move] = [(query,) for query in new]
    if not steps:
        return [*answers]
    if not reading.sentences:
        if len(new) > 1:
            steps.insert(2, (new[0], new[-1]))
        return steps
    waiting = any(frozenset(terms(query)) not in reading.query_stems for query in _leading(reading))
    enough = coverage(reading) >= COVERED or not waiting
    turns = zip_longest(answers, steps) if enough else zip_longest(steps, answers)
    return [move for move in chain.from_iterable(turns) if move is not None]


def coverage(reading: Reading) -> float:
    """Return the share of the question's terms that the evidence holds, 0..1; 1 when the question has no terms."""
    return 1 - len(reading.missing(reading.evidence_stems)) / max(len(reading.terms), 1)


def _leading(reading: Reading) -> list[str]:
    """Return the whole question, and what is still missing of it; the latter first once something is known."""
    words = list(reading.terms.values())
    whole = " ".join(words[:QUERY_WORDS]) or reading.question.strip()
    missing = reading.missing(reading.evidence_stems)
    covered = [word for word in words if word not in missing]
    if not missing or not covered:
        return [whole]
    focus = " ".join(missing if len(missing) > 1 else [covered[0], *missing])
    return [focus, whole] if reading.sentences else [whole, focus]


def queries(reading: Reading, *, of_missing: bool = False) -> list[str]:
    """Return new queries, the best first: the whole question, what is missing, then pairs and single terms.

    Args:
        reading: the conversation; what was asked in it is not asked again.
        of_missing: only queries that name a term which the evidence lacks.
    """
    words = list(reading.terms.values())[:QUERY_WORDS]
    singles = words if len(words) > 1 else []
    pairs = sorted(combinations(range(len(words)), 2), key=_neighbours_last)
    of_two = [f"{words[first]} {words[second]}" for first, second in pairs]
    options = [*_leading(reading), *of_two, *singles]
    lacking = set(terms(" ".join(reading.missing(reading.evidence_stems))))
    new: dict[frozenset[str], str] = {}
    for option in options:
        stems = frozenset(terms(option))
        is_new = option and stems not in reading.query_stems
        if is_new and (not of_missing or stems & lacking):
            new.setdefault(stems, option)
    return list(new.values())


def _neighbours_last(pair: tuple[int, int]) -> tuple[bool, tuple[int, int]]:
    """Sort two words of the request that follow on each other behind all other pairs."""
    first, second = pair
    return second - first == 1, pair


def write(
    reading: Reading, length: int = SENTENCES, skipped: int = 0, *, named: bool = True, anew: bool = False
) -> Written:
    """Return the extractive answer to the question; an honest remark if there is nothing to answer from.

    A draft under critique is kept as far as the evidence supports it, and completed by what the critique misses.

    Args:
        reading: the conversation.
        length: sentences wanted, from 1.
        skipped: how many of the best ranked sentences to pass over.
        named: whether to name the terms of the question that the evidence does not cover.
        anew: whether to number the references from 1 even if the evidence has numbers.
    """
    missing = reading.missing(reading.evidence_stems) if named else []
    remark = f"\n\n{MISSING}{', '.join(missing)}." if missing and reading.sentences else ""
    chosen = select(reading, length, skipped)
    if not chosen or (reading.citable and coverage(reading) < ANSWERABLE):
        return Written(_compose(reading) + remark)
    named_urls = dict.fromkeys(sentence.passage.url for sentence in chosen if sentence.passage.url)
    urls = [url for url in named_urls if not REMEMBERED.fullmatch(url)]
    numbers = _numbered(urls, {} if anew else dict(reading.numbers))
    text = " ".join(_cite(sentence, numbers) for sentence in chosen)
    return Written(text + remark, tuple(numbers), tuple(numbers.values()))


def _numbered(urls: list[str], existing: dict[str, int]) -> dict[str, int]:
    """Return URLs with the numbers that the evidence gives them; from 1 if it does not tell them apart."""
    numbers = {url: existing[url] for url in urls if url in existing}
    if len({*numbers.values()}) == len(urls):
        return dict(sorted(numbers.items(), key=lambda item: item[1]))
    return {url: number for number, url in enumerate(urls, 1)}


def _cite(sentence: Sentence, numbers: dict[str, int]) -> str:
    body = sentence.text.rstrip(" .!:;,…。！：；，")
    url = sentence.passage.url
    number = f" [{numbers.get(url, url)}]" if url else ""
    end = sentence.text[-1:]
    if end not in "!。！":
        end = "."
    return f"{body}{number}{end}"


def _compose(reading: Reading) -> str:
    """Say that nothing was found; for a creative request, compose what the request itself gives."""
    words = list(reading.terms.values())
    if not words or not _CREATIVE.search(reading.request):
        return f"{reading.failure}: {NOTHING}" if reading.failure else NOTHING
    first_half = islice(reading.terms, (len(words) + 1) // 2)
    shown = {*first_half, *terms(reading.draft), *reading.wished}
    named = [word for stem, word in reading.terms.items() if stem in shown]
    return f"{COMPOSED} The request names {', '.join(named)}."


def select(reading: Reading, length: int, skipped: int = 0) -> list[Sentence]:
    """Return the best sentences that do not repeat each other, those of one source together and in their order."""
    ranked = sorted(filter(_quotable, reading.sentences), key=_rank, reverse=True)
    chosen = [sentence for sentence in ranked if reading.critique and _stands_in(sentence, reading.draft)]
    # Room for two more, or a revision could add nothing to a long draft.
    if chosen:
        length = max(length, len(chosen) + 2)
    pool = ranked
    if len(ranked) - skipped >= min(length, 2):
        pool = ranked[skipped:]
    target = {*reading.terms, *reading.wished}
    floor = FLOOR * _rank(ranked[0]) if ranked else 0
    while len(chosen) < length:
        unused = [sentence for sentence in pool if not _repeats_any(sentence, chosen)]
        if not unused:
            break
        lacking = target.difference(*(sentence.stems for sentence in chosen))
        gains = [_gain(sentence, floor, lacking) for sentence in unused]
        chosen.append(unused[gains.index(max(gains))])
    return _in_reading_order(reading, chosen)


def _gain(sentence: Sentence, floor: float, lacking: set[str]) -> float:
    # Cubed: a sentence that covers what is still missing goes before one that ranks a little higher.
    return (floor + _rank(sentence)) * (1 + len(sentence.stems & lacking)) ** 3


def _quotable(sentence: Sentence) -> bool:
    return sentence.score > 0 and count_words(sentence.text) in _LENGTH and not sentence.text.endswith("?")


def _rank(sentence: Sentence) -> float:
    """Rank a sentence by how well it reads alone: badly if it leans on the one before, well if it defines something."""
    if _DANGLING.search(sentence.text):
        return 0.4 * sentence.score
    if _DEFINITION.search(sentence.text):
        return 1.5 * sentence.score
    return sentence.score


def _repeats_any(sentence: Sentence, chosen: list[Sentence]) -> bool:
    return any(_repeats(sentence, other) for other in chosen)


def _repeats(sentence: Sentence, second: Sentence) -> bool:
    return len(sentence.stems & second.stems) > 0.5 * min(len(sentence.stems), len(second.stems))


def _stands_in(sentence: Sentence, text: str) -> bool:
    return sentence.text.rstrip(" .!:;,…") in text


def _in_reading_order(reading: Reading, chosen: list[Sentence]) -> list[Sentence]:
    sources = list(dict.fromkeys(sentence.passage.url for sentence in chosen))
    positions = {id(sentence): position for position, sentence in enumerate(reading.sentences)}
    return sorted(chosen, key=lambda sentence: (sources.index(sentence.passage.url), positions[id(sentence)]))


def body(text: str) -> Iterator[str]:
    """Yield the sentences of an answer that say something: without its references and without remarks about itself."""
    for sentence in sentences(re.split(r"(?im)^[^\w\n]*references[^\w\n]*$", text)[0]):
        if NOTE not in sentence and not sentence.lower().startswith("not covered"):
            yield sentence
