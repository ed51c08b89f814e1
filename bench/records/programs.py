"""The logs of programs: Reflexion, one program a task, and LATS."""

import asyncio
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.replays.measured import together
from bench.replays.records import Record
from reflective_agents.environments.base import Task
from reflective_agents.environments.programming import Programming, read_task

Logs = Sequence[bytes]

WORLD = Programming(timeout=5, memory_mb=2048)
"""Where hidden tests run, with the limits of the published verdicts."""
AT_ONCE = 2
"""Sandboxes at the same time: with more, slow programs would miss the limit."""
_NAME = re.compile(r"(humaneval|mbpp)[/_](\d+)", re.IGNORECASE)


def _rows(log: bytes) -> list[dict[str, Any]]:
    text = gzip.decompress(log) if log[:2] == b"\x1f\x8b" else log
    return [json.loads(line) for line in text.decode().split("\n") if line.strip()]


def _id(row: Mapping[str, Any]) -> str:
    """Return the id of a task; its name is `HumanEval/1`, `HumanEval_1_separate` or `mbpp_1_name`."""
    found = _NAME.match(_called(row))
    assert found is not None, row
    return f"{found[1].lower()}/{found[2]}"


def _called(row: Mapping[str, Any]) -> str:
    return str(row.get("name", row.get("task_id")))


def tasks(logs: Logs) -> Iterator[Record]:
    """Return the tasks of a benchmark."""
    kept = ("name", "prompt", "entry_point", "canonical_solution", "test")
    for row in _rows(logs[0]):
        yield {"id": _id(row), **{name: row[name] for name in kept if name in row}}


def attempts(logs: Logs, style: str, most: int | None = None) -> Iterator[Record]:
    """Return what was written for each task: the first program and its feedback, what was learned, the last program.

    Args:
        logs: One log.
        style: How the programs are to be read: as whole functions, or as bodies below the prompt.
        most: How many of the reflections are kept; None: all.
    """
    for row in _rows(logs[0]):
        lessons = row.get("reflections", [])
        outputs: list[Record] = []
        if "solution" in row and ("implementations" not in row or row["implementations"]):
            first, feedback = row.get("implementations", [])[:1], row.get("test_feedback", [])
            outputs += [{"role": "implement", "text": text} for text in first]
            outputs += [{"role": "evaluate", "text": text} for text in feedback[:1]]
            outputs += [{"role": "reflect", "text": text} for text in lessons[:most]]
            outputs.append({"role": "implement", "final": 1, "text": row["solution"]})
            outputs += [{"role": "evaluate", "last": 1, "text": text} for text in feedback[1:]]
        solved = row.get("is_solved")
        yield {
            "id": _id(row),
            "task": {"name": _called(row), "entry_point": row["entry_point"], "style": style},
            "outputs": outputs,
            "verdict": {"recorded_solved": None if solved is None else int(solved), "n_reflections": len(lessons)},
        }


def execute(records: Sequence[Record], logs: Logs, *, first: bool) -> None:
    """Run the hidden tests of the programs of each record, and add what they say to its verdict.

    Args:
        records: The records of `attempts`.
        logs: The log that they come from; it holds the tests.
        first: Whether the first program is run as well, without what the prompt defines.
    """
    asyncio.run(_execute(records, {_id(row): row for row in _rows(logs[0])}, first))


async def _execute(records: Sequence[Record], rows: Mapping[str, Record], first: bool) -> None:
    ran = [record for record in records if record["outputs"]]
    verdicts = await together((_verdict(record, rows[record["id"]], first) for record in ran), AT_ONCE)
    for record, verdict in zip(ran, verdicts, strict=True):
        record["verdict"] |= verdict


async def _verdict(record: Record, row: Record, first: bool) -> dict[str, int]:
    head = row["prompt"] if record["task"]["style"].startswith("body") else ""
    written = [head + output["text"] for output in record["outputs"] if output["role"] == "implement"]
    alone = read_task({**row, "prompt": ""})
    verdict = {"exec_pass": await _passes(read_task(row), written[-1])}
    return {**verdict, "root_exec_pass": await _passes(alone, written[0])} if first else verdict


async def _passes(task: Task, program: str) -> int:
    return int((await WORLD.measure(task, program))["passed"] == 1)


def sampled(logs: Logs) -> Iterator[Record]:
    """Return a hundred programs and a hundred texts of tests for each task of HumanEval, from two logs in its order."""
    for number, (wrote, tested) in enumerate(zip(*map(_rows, logs), strict=True)):
        yield {
            "id": f"humaneval/{number}",
            "task": {"prompt": wrote["prompt"]},
            "samples": wrote["samples"],
            "tests_prompt": tested["prompt"].removeprefix(wrote["prompt"]),
            "tests": tested["samples"],
        }
