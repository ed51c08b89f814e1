"""What is looked up in: the conversations of LoCoMo, and the paragraphs of CMRC, DRCD and XQuAD."""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from bench.records.sources import SPLIT
from bench.replays.records import Record

Logs = Sequence[bytes]

KEPT_BACK = ("conv-47", "conv-48", "conv-49", "conv-50")
"""Conversations whose figures are not published."""
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D:?(\d+):0*(\d+)")


def conversations(logs: Logs) -> Iterator[Record]:
    """Return the conversations of a zip file, with what is asked about them; misspelt evidence is mended."""
    with zipfile.ZipFile(io.BytesIO(logs[0])) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("locomo10.json") and "__MACOSX" not in name)
        rows = json.loads(archive.read(name))
    for row in rows:
        if row["sample_id"] not in KEPT_BACK:
            yield _conversation(row["sample_id"].removeprefix("conv-"), row["conversation"], row["qa"])


def _conversation(id: str, spoken: dict[str, Any], questions_asked: Sequence[dict[str, Any]]) -> Record:
    sessions: list[Record] = []
    known: set[str] = set()
    for number in _numbers(spoken):
        turns = list(map(_turn, spoken[f"session_{number}"]))
        known.update(turn["id"] for turn in turns)
        sessions.append({"number": number, "at": _at(spoken[f"session_{number}_date_time"]), "turns": turns})
    questions = [_question(f"{id}-{nth}", question, known) for nth, question in enumerate(questions_asked)]
    speakers = [spoken["speaker_a"], spoken["speaker_b"]]
    return {"id": id, "speakers": speakers, "sessions": sessions, "questions": questions}


def _numbers(spoken: Iterable[str]) -> list[int]:
    """Return the numbers of the sessions, in order."""
    matches = map(_SESSION.fullmatch, spoken)
    return sorted(int(match[1]) for match in matches if match)


def _question(id: str, row: dict[str, Any], known: set[str]) -> Record:
    evidence: list[str] = []
    for text in row.get("evidence", []):
        evidence += [turn for turn in _evidence(text) if turn in known]
    return {
        "id": id,
        "question": row["question"],
        "answer": str(row["answer"]) if "answer" in row else None,
        "category": row["category"],
        "evidence": evidence,
    }


def _at(text: str) -> str:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").isoformat(timespec="minutes")


def _turn(turn: dict[str, Any]) -> Record:
    record: Record = {"id": turn["dia_id"], "speaker": turn["speaker"], "text": turn["text"]}
    if turn.get("blip_caption"):
        record["caption"] = turn["blip_caption"]
    return record


def _evidence(text: str) -> list[str]:
    return [f"D{session}:{turn}" for session, turn in _TURN.findall(text)]


def paragraphs(logs: Logs, name: str) -> Iterator[Record]:
    """Return the published paragraphs of a set in SQuAD's form, with their questions.

    Args:
        logs: The set; or the set and then the one by whose texts the published paragraphs are drawn.
        name: How the ids begin.
    """
    rows, drawn = _paragraphs(json.loads(logs[0])), _paragraphs(json.loads(logs[-1]))
    for number, (own, by) in enumerate(zip(rows, drawn, strict=True)):
        if int(hashlib.sha256(by.text.encode()).hexdigest()[:8], 16) % 100 < SPLIT:
            questions: list[Record] = []
            for question in own.questions:
                answers = dict.fromkeys(answer["text"] for answer in question["answers"])
                questions.append({"question": question["question"], "answers": list(answers)})
            yield {"id": f"{name}-{number:04}", "title": own.title, "text": own.text, "questions": questions}


class _Paragraph(NamedTuple):
    title: str
    text: str
    questions: list[dict[str, Any]]


def _paragraphs(found: dict[str, Any]) -> Iterator[_Paragraph]:
    for article in found["data"]:
        yield from (_Paragraph(article["title"], row["context"], row["qas"]) for row in article["paragraphs"])
