"""The recorded runs as attempts: what was thought, done and seen, and what the log says came of it."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.recorded import required
from reflective_agents.environments.base import Task

Record = dict[str, Any]

NOT_RUN = ("absent", "solved_earlier")
_EVALUATED = re.compile(r"Test(?:ed|s) passed:\n?(.*?)\n?\nTests failed:\n?(.*)", re.DOTALL)


class Turn(NamedTuple):
    """One step of an agent."""

    thought: str
    act: str
    observation: str


class Attempt(NamedTuple):
    """One recorded attempt at a task, from the start.

    `lessons` are the reflections that were new before it; `status` is the log's: correct, incorrect or halted.
    """

    trial: int
    lessons: tuple[str, ...]
    turns: tuple[Turn, ...]
    status: str


def load(folder: Path, name: str) -> list[Record]:
    """Read the records of a data set."""
    with gzip.open(required(folder / f"{name}.dev.jsonl.gz"), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def manifest(folder: Path) -> dict[str, Any]:
    """Read what is known of each data set: its model, and the figures that it is to give."""
    known: dict[str, Any] = json.loads(required(folder / "MANIFEST.json").read_text(encoding="utf-8"))
    return known


def attempts(record: Record) -> list[Attempt]:
    """Return the attempts of a record with trials, in order.

    A trial that the log lacks is left out; its reflections belong to the next attempt.
    """
    found: list[Attempt] = []
    pending: list[str] = []
    for verdict in record["verdict"]:
        outputs = [output for output in record["outputs"] if output["trial"] == verdict["trial"]]
        pending += [output["text"].strip() for output in outputs if output["role"] == "reflect"]
        if verdict["status"] not in NOT_RUN:
            found.append(Attempt(verdict["trial"], tuple(pending), tuple(turns(outputs)), verdict["status"]))
            pending = []
    return found


def turns(outputs: list[Record]) -> Iterator[Turn]:
    """Return the steps among outputs, each a thought, an act and an observation."""
    steps = [(output["role"], output["text"].strip()) for output in outputs if output["role"] in Turn._fields]
    for index in range(0, len(steps), 3):
        roles, texts = zip(*steps[index : index + 3], strict=True)
        assert roles == ("thought", "act", "observation"), roles
        yield Turn(*texts)


def question_task(record: Record, supporting: list[Any] | None = None) -> Task:
    """Return the task of a record with a question or a claim, with the paragraphs that it is given, if any."""
    question = record["task"].get("question") or record["task"]["claim"]
    task: Task = {"id": record["id"], "question": question, "gold": record["task"]["gold"]}
    return {**task, "data": {"supporting": supporting}} if supporting else task


def gold_paragraphs(row: Record) -> list[Any]:
    """Return the articles of a distractor row that hold its supporting facts."""
    wanted = {title for title, _ in row["supporting_facts"]}
    return [[title, sentences] for title, sentences in row["context"] if title in wanted]


def evaluated(text: str) -> dict[str, bool]:
    """Return the tests that a feedback names, each with whether it passed."""
    match = _EVALUATED.fullmatch(text)
    assert match is not None, text
    passed, failed = ([line for line in part.split("\n") if line] for part in match.groups())
    return dict.fromkeys(passed, True) | {line.partition(" # output: ")[0]: False for line in failed}
