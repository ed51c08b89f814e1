"""LoCoMo (Maharana et al. 2024, arXiv 2402.17753) and LongMemEval (Wu et al. 2024, arXiv 2410.10813) as plain data."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from bench.recorded import required
from reflective_agents.state.memories import Memory, new_memory

CATEGORIES = {1: "multi-hop", 4: "single-hop", 2: "temporal", 3: "open-domain", 5: "adversarial"}
BETWEEN_TURNS = 20.0
"""Seconds between the turns of a session; the data says only when a session began."""


@dataclass(frozen=True)
class Question:
    """A question, its category, and the ids of the turns that hold its evidence: as published, and as audited."""

    text: str
    category: str
    evidence: frozenset[str]
    audited: frozenset[str]
    asked_at: float | None = None


@dataclass(frozen=True)
class Conversation:
    """The turns of a conversation as memories, in order, and what is asked about them."""

    id: str
    turns: list[Memory]
    questions: list[Question]

    @property
    def now(self) -> float:
        """A day after the last turn."""
        return self.turns[-1]["created"] + 86_400.0


def rows(path: Path) -> Iterator[Any]:
    """Read the rows of a file of JSON lines, compressed or not."""
    required(path)
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def read_locomo(path: Path, corrections: Iterable[Path] = ()) -> list[Conversation]:
    """Read the conversations of a file; `corrections` are files of audited evidence by the id of the question."""
    corrected = chain.from_iterable(map(rows, corrections))
    audited = {row["id"]: row["evidence"] for row in corrected}
    return [_conversation(row, audited) for row in rows(path)]


def _conversation(row: Mapping[str, Any], audited: Mapping[str, list[str]]) -> Conversation:
    turns, ids = [], {}
    for session in row["sessions"]:
        start = datetime.fromisoformat(session["at"]).replace(tzinfo=UTC).timestamp()
        for number, turn in enumerate(session["turns"]):
            caption = f" [shares an image: {turn['caption']}]" if "caption" in turn else ""
            memory = new_memory(
                turn["text"] + caption,
                created=start + number * BETWEEN_TURNS,
                importance=5,
                key=turn["id"],
                speaker=turn["speaker"],
                conversation=str(session["number"]),
            )
            turns.append(memory)
            ids[turn["id"]] = memory["id"]
    questions = [
        Question(question["question"], CATEGORIES[question["category"]], *_evidence(question, audited, ids))
        for question in row["questions"]
    ]
    return Conversation(str(row["id"]), turns, [question for question in questions if question.evidence])


def _evidence(
    question: Mapping[str, Any], audited: Mapping[str, list[str]], ids: Mapping[str, str]
) -> tuple[frozenset[str], frozenset[str]]:
    published = frozenset(ids[turn] for turn in question["evidence"] if turn in ids)
    corrected = frozenset(ids[turn] for turn in audited.get(question["id"], question["evidence"]) if turn in ids)
    return published, corrected or published


def read_longmemeval(path: Path) -> list[Conversation]:
    """Read the questions of a LongMemEval file, each with its own haystack; the evidence is what has `has_answer`.

    Questions about what was never said (`_abs` in their ids) have no evidence, and are left out.
    """
    with path.open(encoding="utf-8") as file:
        given = json.load(file)
    made = [_haystack(row) for row in given if "_abs" not in row["question_id"]]
    return [conversation for conversation in made if conversation.questions]


def _haystack(row: Mapping[str, Any]) -> Conversation:
    turns, evidence = [], []
    sessions = zip(row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"], strict=True)
    for number, (name, at, session) in enumerate(sessions):
        for index, turn in enumerate(session):
            if not turn["content"].strip():
                continue
            memory = new_memory(
                turn["content"],
                created=_seconds(at) + index * BETWEEN_TURNS,
                importance=5,
                key=f"{number} {name} {index}",
                speaker=turn["role"],
                conversation=f"{number} {name}",
            )
            turns.append(memory)
            if turn.get("has_answer"):
                evidence.append(memory["id"])
    wanted = frozenset(evidence)
    question = Question(row["question"], row["question_type"], wanted, wanted, _seconds(row["question_date"]))
    ordered = sorted(turns, key=lambda one: one["created"])
    return Conversation(row["question_id"], ordered, [question] if wanted else [])


def _seconds(at: str) -> float:
    """Return the seconds of a date such as 2023/05/20 (Sat) 02:21."""
    year, month, day, hour, minute = map(int, re.findall(r"\d+", at)[:5])
    return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()
