"""What the offline model sees in a conversation: the request, the evidence, past searches, what is to be judged."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from langchain_core.messages import BaseMessage

from reflective_agents.offline.evidence import found_in, listed_in, numbers_of, remembered_in, reported_in, results_of
from reflective_agents.offline.pieces import Piece, blocks_of, last_text, of_kind, pieces_of, texts_of
from reflective_agents.state.forks import CachedProperty
from reflective_agents.text.extract import Passage, Sentence, rank, sentences, terms
from reflective_agents.text.words import is_pair

_PARTICLES = frozenset("是的之了在和")
"""Characters of Chinese that join words, but that words hold too: 目的, 和平."""
LONG_REQUEST = 40
"""Words above which a request brings its own material: what it asks is then its questions, or its first sentence."""
CRITICISE = "Criticise the latest report."
"""What this model gives a critic to do."""
_FOLLOW_UP = re.compile(
    r"^(and|but|so|what about|how about)\b|\b(it|its|they|them|their|this|that|these|those)\b", re.I
)
_OWN_CRITIQUE = re.compile(r"(No answer yet|Coverage \d+%)")
_NOT_COVERED = re.compile(r"not covered(?: by what was found)?:([^.\n]*)", re.I)


@dataclass(frozen=True)
class Reading:
    """A conversation as the offline model understands it."""

    request: str
    question: str
    """What the request asks, completed by the question before it when it is a follow-up."""
    passages: tuple[Passage, ...]
    numbers: tuple[tuple[str, int], ...]
    """The URLs of the evidence with the numbers that they have there."""
    query_stems: frozenset[frozenset[str]]
    """The stems of each query so far."""
    searches: int
    """Actions since the request."""
    draft: str
    """The last draft or answer; empty when there is none since the request."""
    critique: str
    verdict: str
    """What is said of an attempt that failed; empty unless a lesson is to be drawn from one."""
    candidates: tuple["Reading", ...] = ()
    name: str = ""
    """The number of a candidate."""
    author: str = ""
    """Who a candidate is from."""
    members: tuple[Piece, ...] = ()
    """Whom tasks can be given to."""
    subgoals: tuple[Piece, ...] = ()
    """What was planned so far."""
    failures: tuple[Piece, ...] = ()
    """What became of the sub-goals that have failed."""
    criticises: bool = False
    """Whether a critique of the draft is asked for, not an answer."""
    failure: str = ""
    """The word to begin with where there is no answer; empty if none is agreed on."""
    scene: str = ""
    """The last message as it stands."""
    text: str = ""
    """What a candidate says that has no tags inside."""
    questions: tuple[str, ...] = ()
    """The sub-questions that were asked so far."""
    turns: tuple[str, ...] = ()
    """The earlier turns of a conversation that are to be summarised, or are summarised."""
    last: str = ""
    """The sub-question that ends the questions, where the next one is asked for; else empty."""
    most: int = 1
    """Most sub-questions in a reply, one a line."""

    @CachedProperty
    def terms(self) -> dict[str, str]:
        """The stems of the question, each with its word."""
        return dict(terms(self.question))

    @CachedProperty
    def wished(self) -> dict[str, str]:
        """The stems that a critique names as missing, each with its word."""
        named = _NOT_COVERED.findall(self.critique)
        is_own = bool(named) or _OWN_CRITIQUE.match(self.critique) is not None
        return dict(terms(" ".join(named) if is_own else self.critique))

    @CachedProperty
    def sentences(self) -> list[Sentence]:
        """The sentences of the evidence in reading order, ranked for the question and what a critique misses."""
        return rank(self.passages, {**self.terms, **self.wished}.values())

    @CachedProperty
    def evidence_stems(self) -> frozenset[str]:
        """All stems of the evidence."""
        return frozenset().union(*(sentence.stems for sentence in self.sentences))

    def missing(self, stems: Iterable[str]) -> list[str]:
        """Return the words of the question that are not among the stems, nor pairs of characters where two that are
        meet."""
        covered = set(stems)
        found = {word for stem, word in self.terms.items() if stem in covered}
        ends = _PARTICLES | {word[-1] for word in found}
        begins = _PARTICLES | {word[0] for word in found}
        lacking = [word for stem, word in self.terms.items() if stem not in covered]
        return [word for word in lacking if not (is_pair(word) and word[0] in ends and word[1] in begins)]

    @property
    def citable(self) -> bool:
        """Whether any of the evidence has a URL to cite."""
        return any(passage.url for passage in self.passages)


def read(messages: Sequence[BaseMessage], request: str = "") -> Reading:
    """Return what the conversation holds. System messages are instructions for real models and are not read.

    Args:
        messages: The conversation.
        request: The user's request, where the prompt has other messages of the user's role, such as instructions.
            Without it the request is what the user said last.
    """
    pieces = list(chain.from_iterable(map(pieces_of, messages)))
    reading = _reading(_without_instructions(pieces, request.strip()))
    if not messages:
        return reading
    last = messages[-1]
    return replace(reading, scene=last.text, **last.additional_kwargs.get("subquestions", {}))


def _without_instructions(pieces: Sequence[Piece], request: str) -> list[Piece]:
    """Make the request what the user asked and no more, and notes of what stands after it in the user's role."""
    if not request:
        return [*pieces]
    for at in reversed(range(len(pieces))):
        if pieces[at].kind == "human" and request in pieces[at].text:
            return [*pieces[:at], replace(pieces[at], text=request), *map(_as_note, pieces[at + 1 :])]
    return [*pieces]


def _as_note(piece: Piece) -> Piece:
    return replace(piece, kind="note") if piece.kind == "human" else piece


def _reading(pieces: Sequence[Piece]) -> Reading:
    at, request = _request(pieces)
    reports, aims = of_kind(pieces, "report"), of_kind(pieces, "aim")
    criticises = bool(reports) and request.endswith(CRITICISE)
    if criticises:
        request = last_text(blocks_of(last_text(aims, "aim")), "request")
    question, material = _question(request)
    earlier = [text for text in texts_of(pieces[:at], "human", "request") if text != request]
    # "And who wrote it?" cannot be searched for alone.
    if earlier and len(terms(question)) < 3 and _FOLLOW_UP.search(question):
        question = f"{_question(earlier[-1])[0]} {question}"
    results = results_of(pieces)
    texts = [*filter(_is_long, earlier), material, *texts_of(pieces, "source")]
    passages = [*_material(texts), *found_in(results), *reported_in(reports), *remembered_in(pieces)]
    draft = _current_answer(pieces[at:]) or last_text(pieces, "draft")
    if criticises:
        draft = reports[-1].text
    queries = [frozenset(terms(query)) for query in texts_of(pieces, "query")]
    return Reading(
        request=request,
        question=question,
        passages=tuple(dict.fromkeys(passages)),
        numbers=tuple({**listed_in(reports), **numbers_of(results)}.items()),
        query_stems=frozenset(queries),
        searches=len(of_kind(pieces[at:], "action")),
        draft=draft,
        critique=last_text(pieces, "critique"),
        verdict=last_text(pieces, "verdict"),
        candidates=tuple(_candidates(pieces)),
        author=last_text(pieces, "author"),
        members=tuple(of_kind(pieces, "member")),
        subgoals=tuple(of_kind(pieces, "subgoal")),
        failures=tuple(of_kind(pieces, "failure")),
        criticises=criticises,
        failure=aims[0].name if aims else "",
        questions=tuple(texts_of(pieces, "asked")),
        turns=tuple(texts_of(pieces, "summary", "turn")),
    )


def _is_long(text: str) -> bool:
    return len(text.split()) > LONG_REQUEST


def _material(texts: Iterable[str]) -> Iterator[Passage]:
    for text in texts:
        if text:
            yield Passage("", "", text)


def _candidates(pieces: Sequence[Piece]) -> Iterator[Reading]:
    """Read each candidate as the end of the conversation without the others."""
    shared = [piece for piece in pieces if piece.kind != "candidate"]
    for piece in of_kind(pieces, "candidate"):
        yield replace(_reading([*shared, *blocks_of(piece.text)]), name=piece.name, text=piece.text)


def _request(pieces: Sequence[Piece]) -> tuple[int, str]:
    """Return the place and text of the request.

    It is the last one in tags; else the last human message that opens a turn, as the first does, and each after an
    answer. Others, such as "Revise your answer" after search results, are instructions within the turn.
    """
    at, last, tagged = 0, "", any(piece.kind == "request" for piece in pieces)
    for index, piece in enumerate(pieces):
        if piece.kind == "request" or (piece.kind == "human" and not tagged and last in {"", "answer"}):
            at, last = index, ""
        elif piece.kind in {"action", "observation", "answer", "draft", "critique"}:
            last = piece.kind
    return at, pieces[at].text if pieces else ""


def _question(request: str) -> tuple[str, str]:
    """Split a long request into what it asks and the material it brings; a short one brings none."""
    parts = sentences(request)
    if not _is_long(request) or len(parts) < 2:
        return request, ""
    asks = [part for part in parts if part.endswith("?")] or [parts[0]]
    others = [part for part in parts if part not in asks]
    return " ".join(asks), " ".join(others)


def _current_answer(pieces: Sequence[Piece]) -> str:
    """Return the current answer: the last one, unless an action follows it."""
    steps = of_kind(pieces, "draft", "answer", "action")
    return steps[-1].text if steps and steps[-1].kind != "action" else ""
