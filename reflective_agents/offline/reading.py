"""What the offline model sees in a conversation: the request, the evidence, past searches, what is to be judged."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from reflective_agents.offline.tags import read_tags, without_tags
from reflective_agents.state.forks import CachedProperty
from reflective_agents.text.extract import Passage, Sentence, rank, sentences, terms
from reflective_agents.text.references import split_list
from reflective_agents.text.structure import Json

LONG_REQUEST = 40
"""Words above which a request brings its own material: what it asks is then its questions, or its first sentence."""
CRITICISE = "Criticise the latest report."
"""What this model gives a critic to do."""
UNCITABLE = re.compile(r"(?<!\s)\s*+\[\d+\]")
"""Marks such as [3] in a source, which would pass for citations of ours."""
REMEMBERED = re.compile(r"m\d+")
"""Names of memories, by which they are cited."""

# The tags of the prompts. What this model reads is what the prompts quote, so both change together.
_TAGS = (
    *(
        "conversation",
        "request",
        "draft",
        "critique",
        "thought",
        "action",
        "observation",
        "answer",
        "source",
        "verdict",
    ),
    *("aim", "subgoal", "report", "failure", "member", "author", "task", "remark", "asked", "subquestion", "lesson"),
    *("memory", "turn", "summary", "trajectory", "attempt", "candidate", "checked"),
)
_QUOTED = re.compile(r"(?<!\w)(?:\"((?:[^\"\n]|(?<=\w)\"(?=\w))++)\"|'((?:[^'\n]|(?<=\w)'(?=\w))++)')(?!\w)")
_FOLLOW_UP = re.compile(
    r"^(and|but|so|what about|how about)\b|\b(it|its|they|them|their|this|that|these|those)\b", re.I
)
_OWN_CRITIQUE = re.compile(r"(No answer yet|Coverage \d+%)")
_REMARK = re.compile(r"not covered|.*offline extractive model", re.I)
_REFERENCE = re.compile(r"^[^\w\n]*+(\d++)[\].:]++\s++(?:[^\n]*, )?(\S+)", re.M)
_CITED = re.compile(r"\[(\d+)\]")
_NOT_COVERED = re.compile(r"not covered(?: by what was found)?:([^.\n]*)", re.I)


@dataclass(frozen=True)
class Piece:
    """A part of the conversation: its kind (a tag's name, `human`, `note` or `query`), its text, and what the tag's
    first attribute says."""

    kind: str
    text: str
    name: str = ""


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
        return dict(terms(" ".join(named) if named or _OWN_CRITIQUE.match(self.critique) else self.critique))

    @CachedProperty
    def sentences(self) -> list[Sentence]:
        """The sentences of the evidence in reading order, ranked for the question and what a critique misses."""
        return rank(self.passages, {**self.terms, **self.wished}.values())

    @CachedProperty
    def evidence_stems(self) -> frozenset[str]:
        """All stems of the evidence."""
        return frozenset().union(*(sentence.stems for sentence in self.sentences))

    def missing(self, stems: Iterable[str]) -> list[str]:
        """Return the words of the question that are not among the stems."""
        return [word for stem, word in self.terms.items() if stem not in set(stems)]

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
    pieces = [piece for message in messages for piece in _pieces(message)]
    return replace(
        _reading(_without_instructions(pieces, request.strip())),
        scene=messages[-1].text if messages else "",
        **(messages[-1].additional_kwargs.get("subquestions", {}) if messages else {}),
    )


def _without_instructions(pieces: Sequence[Piece], request: str) -> list[Piece]:
    """Make the request what the user asked and no more, and notes of what stands after it in the user's role."""
    matching = [index for index, piece in enumerate(pieces) if piece.kind == "human" and request in piece.text]
    if not request or not matching:
        return [*pieces]
    at = matching[-1]
    return [*pieces[:at], replace(pieces[at], text=request), *map(_as_note, pieces[at + 1 :])]


def _as_note(piece: Piece) -> Piece:
    return replace(piece, kind="note") if piece.kind == "human" else piece


def _pieces(message: BaseMessage) -> Iterator[Piece]:
    if isinstance(message, AIMessage):
        if not message.tool_calls:
            yield Piece("answer", message.text)
        for call in message.tool_calls:
            yield Piece("action", call["name"])
            yield from (Piece("query", text) for text in _strings(call["args"]))
    elif isinstance(message, ToolMessage):
        yield Piece("observation", message.text)
    elif isinstance(message, HumanMessage):
        tagged = list(_blocks(message.text))
        rest = without_tags(message.text, _TAGS).strip()
        if rest:
            yield Piece("note" if tagged else "human", rest)
        yield from tagged


def _blocks(text: str) -> Iterator[Piece]:
    for tag, attributes, body, *_ in read_tags(text, _TAGS):
        if tag == "conversation":
            yield from (Piece("human", turn) for turn in re.findall(r"^human: (.*)", body, re.M))
        elif tag in {"trajectory", "attempt"}:
            yield from _blocks(body)
        elif tag == "action":
            yield Piece("action", body)
            yield from (Piece("query", match[1] or match[2]) for match in _QUOTED.finditer(body))
        else:
            kind = "request" if tag == "subquestion" else tag
            name = next(iter(attributes.values()), "")
            yield Piece(kind, body if tag == "candidate" else body.replace("<\\/", "</").strip(), name)


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value.values()])
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def _reading(pieces: Sequence[Piece]) -> Reading:
    at, request = _request(pieces)
    reports = [piece for piece in pieces if piece.kind == "report"]
    if criticises := bool(reports and request.endswith(CRITICISE)):
        request = _last(list(_blocks(_last(pieces, "aim"))), "request")
    question, material = _question(request)
    earlier = [piece.text for piece in pieces[:at] if piece.kind in {"human", "request"} and piece.text != request]
    # "And who wrote it?" cannot be searched for alone.
    if earlier and len(terms(question)) < 3 and _FOLLOW_UP.search(question):
        question = f"{_question(earlier[-1])[0]} {question}"
    texts = [*(text for text in earlier if len(text.split()) > LONG_REQUEST), material]
    sources = [piece.text for piece in pieces if piece.kind == "source"]
    passages = [Passage("", "", text) for text in (*texts, *sources) if text]
    shared = [piece for piece in pieces if piece.kind != "candidate"]
    results = _results(pieces)
    return Reading(
        request=request,
        question=question,
        passages=tuple(dict.fromkeys([*passages, *_passages(results), *_reported(reports), *_remembered(pieces)])),
        numbers=tuple({**_listed(reports), **_numbers(results)}.items()),
        query_stems=frozenset(frozenset(terms(piece.text)) for piece in pieces if piece.kind == "query"),
        searches=sum(piece.kind == "action" for piece in pieces[at:]),
        draft=reports[-1].text if criticises else _current_answer(pieces[at:]) or _last(pieces, "draft"),
        critique=_last(pieces, "critique"),
        verdict=_last(pieces, "verdict"),
        candidates=tuple(
            replace(_reading([*shared, *_blocks(piece.text)]), name=piece.name, text=piece.text)
            for piece in pieces
            if piece.kind == "candidate"
        ),
        author=_last(pieces, "author"),
        members=tuple(piece for piece in pieces if piece.kind == "member"),
        subgoals=tuple(piece for piece in pieces if piece.kind == "subgoal"),
        failures=tuple(piece for piece in pieces if piece.kind == "failure"),
        criticises=criticises,
        failure=next((piece.name for piece in pieces if piece.kind == "aim"), ""),
        questions=tuple(piece.text for piece in pieces if piece.kind == "asked"),
        turns=tuple(piece.text for piece in pieces if piece.kind in {"summary", "turn"}),
    )


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
    if len(request.split()) <= LONG_REQUEST or len(parts) < 2:
        return request, ""
    asks = [part for part in parts if part.endswith("?")] or [parts[0]]
    return " ".join(asks), " ".join(part for part in parts if part not in asks)


def _current_answer(pieces: Sequence[Piece]) -> str:
    """Return the current answer: the last one, unless an action follows it."""
    steps = [piece for piece in pieces if piece.kind in {"draft", "answer", "action"}]
    return steps[-1].text if steps and steps[-1].kind != "action" else ""


def _last(pieces: Sequence[Piece], *kinds: str) -> str:
    return next((piece.text for piece in reversed(pieces) if piece.kind in kinds), "")


def _results(pieces: Iterable[Piece]) -> list[dict[str, Json]]:
    """Return the search results among the observations; anything but a JSON array of results is not evidence."""
    arrays = [_json_array(piece.text) for piece in pieces if piece.kind == "observation"]
    return [result for result in chain.from_iterable(arrays) if isinstance(result, dict)]


def _passages(results: Iterable[dict[str, Json]]) -> Iterator[Passage]:
    for result in results:
        if isinstance(content := result.get("content"), str):
            title, url = str(result.get("title") or ""), str(result.get("url") or "")
            yield Passage(title, url, UNCITABLE.sub("", content))


def _numbers(results: Iterable[dict[str, Json]]) -> dict[str, int]:
    """Return the numbers of search results by their URLs."""
    numbers = {}
    for result in results:
        number = result.get("number")
        if isinstance(number, int):
            numbers[str(result.get("url"))] = number
    return numbers


def _listed(reports: Iterable[Piece]) -> dict[str, int]:
    """Return the numbers that reports list of their references, by URLs."""
    entries = chain.from_iterable(_REFERENCE.findall(split_list(report.text)[1]) for report in reports)
    return {url: int(number) for number, url in entries}


def _reported(reports: Iterable[Piece]) -> Iterator[Passage]:
    """Yield the sentences of reports, each with the page that it cites; what a report says of itself is left out."""
    for report in reports:
        statements, listed = split_list(report.text)
        urls = dict(_REFERENCE.findall(listed))
        for sentence in sentences(statements):
            if not _REMARK.match(sentence):
                cited = _CITED.findall(sentence)
                yield Passage("", urls.get(cited[0], "") if cited else "", UNCITABLE.sub("", sentence))


def _remembered(pieces: Iterable[Piece]) -> Iterator[Passage]:
    """Yield the memories that an answer may cite by their names, such as m1."""
    for piece in pieces:
        if piece.kind == "memory" and REMEMBERED.fullmatch(piece.name):
            yield Passage("", piece.name, UNCITABLE.sub("", piece.text))


def _json_array(text: str) -> list[Json]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    value = value.get("results") if isinstance(value, dict) else value
    return value if isinstance(value, list) else []
