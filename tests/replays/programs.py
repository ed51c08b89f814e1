"""Replays of programming: the first program, what its tests say, what is learned from it, and the last program.

The tests that a task shows are those that the log's first feedback names. The programs between the first and the last
one are in no log, so that all reflections come as one. Hidden tests are measured after the run.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from environments.base import Task
from environments.programming import Programming, read_task
from graphs import trials
from nodes import agent
from state.context import TrialsContext
from testing.fake import FakeChatModel
from tests.replays.keyed import Key, Model, listed, replaced
from tests.replays.measured import UNEXPLAINED, Differences, Measured, together
from tests.replays.records import Record, evaluated, load

BENCHMARKS = ("bench_humaneval", "bench_humaneval_multipl_e", "bench_mbpp")
"""Where the tasks come from; of two forms of a task the later one counts, which is the one that the logs used."""

WORLD = Programming(timeout=200, memory_mb=1024)
"""With time to spare, so that a busy machine changes no figure: the slowest program takes four seconds alone."""

AT_ONCE = 4
"""Sandboxes at the same time."""

_OBSERVED = re.compile(r"<observation>\n(.*?)\n</observation>", re.DOTALL)

_HELPERS = "our tests can call the functions that the prompt defines, the log's knew the program alone"
_SYMPY = "the program imports sympy, which is not installed here"
_IMPORTS = "our tests do not see what the program imports"
_REPLACED = "in the log all programs ran in one process, where another one had replaced `sum`"
_LEFT_BEHIND = "the program lacks an import, which in the log another one had left in the process"
_SLOW = "the program is right, but slower than the five seconds of the published figure"
_BEST = "the run answers with the program that passes most of the visible tests, which here is the first one"

LISTED: dict[str, dict[str, dict[str, str]]] = {
    "lats_humaneval_gpt4_new": {
        "feedback": {"humaneval/50": _HELPERS, "humaneval/39": _SYMPY, "humaneval/139": _IMPORTS},
        "root_exec_pass": {"humaneval/38": _HELPERS, "humaneval/50": _HELPERS, "humaneval/39": _SYMPY},
    },
    "lats_humaneval_gpt35_4tst": {"answer": {"humaneval/123": _BEST}},
    "lats_cot_mbpp_gpt35": {
        "feedback": {
            **dict.fromkeys(
                [f"mbpp/{task}" for task in (164, 65, 170, 408, 764, 83, 398, 615)],
                _REPLACED,
            ),
            **dict.fromkeys(["mbpp/731", "mbpp/756"], _LEFT_BEHIND),
        },
        "exec_pass": {"mbpp/123": _SLOW},
    },
}
"""Where our environment deliberately says something else than the log: data set, what differs, task, and why."""


class Logged(NamedTuple):
    """What a log holds of one task."""

    task: Task
    tests: dict[str, bool]
    """The tests of the first feedback, each with whether the first program passed it."""
    lesson: str
    programs: tuple[str, ...]
    """The first and the last program as replies; only one, if nothing was reflected in between."""
    verdict: dict[str, Any]


async def programs(folder: Path, name: str) -> Measured:
    """Replay the records of a log that hold a first program and its feedback."""
    rows = {row["id"]: row for benchmark in BENCHMARKS for row in load(folder, benchmark)}
    known = [_read(record, rows[record["id"]]) for record in load(folder, name) if record["outputs"]]
    model = Model()
    for logged in known:
        _record(model, logged)
    settings = TrialsContext(
        model=FakeChatModel(reply=model),
        environment="programming",
        mode="text",
        max_actions=1,
        answer_at_limit=False,
        search="none",
        max_answer_tokens=100_000,
        max_total_tokens=100_000_000,
    )

    async def run(logged: Logged) -> dict[str, Any]:
        context = settings.model_copy(update={"max_trials": len(logged.programs)})
        inputs = {"messages": [("user", logged.task["question"])], "task": logged.task}
        return await trials.graph.ainvoke(inputs, context=context)

    with patch.object(agent, "get_environment", replaced(WORLD)):
        results = await together(map(run, known), AT_ONCE)
    return await _measure(name, known, results, model)


def _read(record: Record, row: Record) -> Logged:
    outputs = [(output["role"], output["text"]) for output in record["outputs"]]
    tests = evaluated(next(text for role, text in outputs if role == "evaluate"))
    lesson = "\n".join(text.strip() for role, text in outputs if role == "reflect")
    replies = [f"Thought 1: I write it.\nAction 1: {_action(text)}" for role, text in outputs if role == "implement"]
    task = read_task(row)
    task = {**task, "data": {**task["data"], "tests": list(tests)}}
    return Logged(task, tests, lesson, tuple(replies if lesson else replies[:1]), record["verdict"])


def _action(program: str) -> str:
    return f"```python\n{program}\n```"


def _record(model: Model, logged: Logged) -> None:
    """Record what the model wrote: a program, and after a failure a lesson and another program."""
    shown = WORLD.public(WORLD.start(logged.task)).strip()
    first, *second = logged.programs
    model.add(Key("act", shown), first)
    for last in second:
        failed = first.partition("Action 1: ")[2]
        model.add(Key("reflect", shown, acts=(failed,)), logged.lesson)
        model.add(Key("act", shown, listed([logged.lesson])), last)


async def _measure(name: str, known: Sequence[Logged], results: Sequence[dict[str, Any]], model: Model) -> Measured:
    """Run the hidden tests of the first and the last program and of the answer, and compare all with the log."""
    tasks = [logged.task for logged in known]
    written = [(result["trials"][0]["answer"], result["trials"][-1]["answer"], result["answer"]) for result in results]
    passed = await together(map(_passed, tasks, written), AT_ONCE)
    first, last, answers = (list(column) for column in zip(*passed, strict=True))
    told = [_OBSERVED.findall(result["trials"][0]["attempt"]) for result in results]
    ours: dict[str, list[Any]] = {
        "feedback": [evaluated(text[0]) if text else None for text in told],
        "exec_pass": last,
        "answer": answers,
    }
    theirs: dict[str, list[Any]] = {
        "feedback": [logged.tests for logged in known],
        "exec_pass": [bool(logged.verdict["exec_pass"]) for logged in known],
        "answer": last,
    }
    if any(logged.lesson for logged in known):
        ours["root_exec_pass"] = first
        theirs["root_exec_pass"] = [bool(logged.verdict["root_exec_pass"]) for logged in known]
    measured = Measured({}, Differences(), [model])
    for kind, values in ours.items():
        _compare(measured, name, kind, zip(tasks, values, theirs[kind], strict=True))
    measured.figures.update({kind: sum(values) for kind, values in ours.items() if kind.endswith("exec_pass")})
    return measured


def _compare(measured: Measured, name: str, kind: str, compared: Any) -> None:
    """Note the tasks in which something differs from the log, each with the reason that is listed for it."""
    listed = LISTED.get(name, {}).get(kind, {})
    for task, ours, theirs in compared:
        if ours != theirs:
            id = task["id"]
            measured.differences.add(f"{kind}: {listed.get(id, UNEXPLAINED)}", id)
            if kind.endswith("exec_pass") and id in listed:
                measured.corrections[kind] = measured.corrections.get(kind, 0) + theirs - ours


async def _passed(task: Task, written: Sequence[str | None]) -> list[bool]:
    """Return which programs pass the hidden tests of a task; the same one runs once."""
    ran = {text: (await WORLD.measure(task, text or ""))["passed"] == 1 for text in dict.fromkeys(written)}
    return [ran[text] for text in written]
