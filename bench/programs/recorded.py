"""Programs and texts of tests that a model was recorded to write for the same tasks."""

import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.recorded import required
from reflective_agents.environments.base import Task
from reflective_agents.environments.programming import Programming, read_task
from reflective_agents.state.errors import Misuse

WRITTEN, HIDDEN = "codet_humaneval", "bench_humaneval"
"""What the files are called before the first dot: what the model wrote, and the tests that it never saw."""
PER_TEXT = 5
"""Tests that a text of tests counts for, as in CodeT."""
_END = re.compile(r"\n(?=class|def|#|if|print)")
"""Where a completion goes on with something else than the function, as in CodeT."""


@dataclass(frozen=True)
class Problem:
    """A task with what the model wrote for it.

    Attributes:
        task: The function that is asked for, with the hidden tests and no others.
        programs: Whole programs, each in a fence.
        tests: The assertions of each text of tests.
    """

    task: Task
    programs: Sequence[str]
    tests: Sequence[Sequence[str]]

    def drawn(self, programs: int, texts: int, seed: int) -> "Problem":
        """Return the problem with so many of its programs and texts of tests, in a seeded order."""
        order = random.Random(f"{self.task['id']} {seed}")
        return replace(self, programs=_some(order, self.programs, programs), tests=_some(order, self.tests, texts))

    def tested(self) -> Task:
        """Return the task with the model's tests. A test counts as often as it was written."""
        written = [test for text in self.tests for test in text]
        return {**self.task, "data": {**self.task["data"], "tests": written}}


def read_problems(folder: Path) -> list[Problem]:
    """Read all tasks of a folder.

    Raises:
        Misuse: if a file is missing there.
    """
    rows = {row["id"]: row for row in _rows(folder, HIDDEN)}
    return [_problem(record, rows[record["id"]]) for record in _rows(folder, WRITTEN)]


def _some(order: random.Random, written: Sequence[Any], most: int) -> list[Any]:
    return order.sample(written, min(most, len(written)))


def _rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    files = sorted(required(folder).glob(f"{name}.*jsonl.gz"))
    if not files:
        raise Misuse(f"{folder} holds no {name}.*.jsonl.gz: name the folder of the recorded files")
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _problem(record: dict[str, Any], row: dict[str, Any]) -> Problem:
    prompt = record["task"]["prompt"]
    task = read_task({**row, "prompt": prompt})
    task["data"]["tests"] = []
    programs = [f"```python\n{prompt}{_END.split(text)[0]}\n```" for text in record["samples"]]
    return Problem(task, programs, [_assertions(task, text) for text in record["tests"]])


def _assertions(task: Task, text: str) -> list[str]:
    """Return the tests of a text that continues the word `assert`."""
    tests: list[str] = Programming().with_own_tests(task, f"assert {text.lstrip()}", PER_TEXT)["data"]["tests"]
    return tests
