"""Replays of programming: the first program, what its tests say, what is learned from it, and the last program.

The tests that a task shows are those that the log's first feedback names. The programs between the first and the last
one are in no log, so that all reflections come as one. Hidden tests are measured after the run.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from bench.replays.keyed import Key, Model, listed, replaced, step
from bench.replays.measured import UNEXPLAINED, Differences, Measured, together
from bench.replays.reasons import Program, explain
from bench.replays.records import Record, evaluated, load
from reflective_agents.environments import registry
from reflective_agents.environments.base import Task
from reflective_agents.environments.programming import Programming, read_task
from reflective_agents.graphs import trials
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.testing.fake import FakeChatModel

BENCHMARKS = ("bench_humaneval", "bench_humaneval_multipl_e", "bench_mbpp")
"""Where the tasks come from; of two forms of a task the later one counts, which is the one that the logs used."""

WORLD = Programming(timeout=200, memory_mb=1024)
"""With time to spare, so that a busy machine changes no figure: the slowest program takes four seconds alone."""

AT_ONCE = 4
"""Sandboxes at the same time."""

_OBSERVED = re.compile(r"<observation>\n(.*?)\n</observation>", re.DOTALL)

_SLOW = "the program is right, but takes seconds: more than the published figure allowed"
_BEST = "the run answers with the program that passes most of the visible tests, which here is the first one"
IMPATIENT = Programming(timeout=1, memory_mb=1024)
"""In which a program that takes seconds fails."""


class Logged(NamedTuple):
    """What a log holds of one task."""

    task: Task
    feedback: str
    """The first feedback."""
    lesson: str
    programs: tuple[str, ...]
    """The first and the last program as replies; only one, if nothing was reflected in between."""
    verdict: dict[str, Any]


async def programs(folder: Path, name: str) -> Measured:
    """Replay the records of a log that hold a first program and its feedback."""
    rows = {row["id"]: row for benchmark in BENCHMARKS for row in load(folder, benchmark)}
    games = [_read(record, rows[record["id"]]) for record in load(folder, name) if record["outputs"]]
    model = Model()
    for logged in games:
        _record(model, logged)
    settings = TrialsContext(
        model=FakeChatModel(reply=model),
        environment="programming",
        acting="paper",
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

    with patch.object(registry, "get_environment", replaced(WORLD)):
        results = await together(map(run, games), AT_ONCE)
    return await _measure(games, results, model)


def _read(record: Record, row: Record) -> Logged:
    outputs = [(output["role"], output["text"]) for output in record["outputs"]]
    judgement = next(text for role, text in outputs if role == "evaluate")
    lesson = "\n".join(text.strip() for role, text in outputs if role == "reflect")
    replies = [f"Thought 1: I write it.\nAction 1: {_action(text)}" for role, text in outputs if role == "implement"]
    task = read_task(row)
    task = {**task, "data": {**task["data"], "tests": list(evaluated(judgement))}}
    return Logged(task, judgement, lesson, tuple(replies if lesson else replies[:1]), record["verdict"])


def _action(program: str) -> str:
    return f"```python\n{program}\n```"


def _record(model: Model, logged: Logged) -> None:
    """Record what the model wrote: a program, and after a failure a lesson and another program."""
    shown = WORLD.public(WORLD.start(logged.task)).strip()
    first, *second = logged.programs
    model.add(Key("act", shown), first)
    for last in second:
        failed = step("I write it.", first.partition("Action 1: ")[2], "")
        model.add(Key("reflect", shown, steps=failed, verdict=True), logged.lesson)
        model.add(Key("act", shown, listed([logged.lesson])), last)


async def _measure(known: Sequence[Logged], results: Sequence[dict[str, Any]], model: Model) -> Measured:
    """Run the hidden tests of the first and the last program and of the answer, and compare all with the log."""
    tasks = [logged.task for logged in known]
    written = [(result["trials"][0]["answer"], result["trials"][-1]["answer"], result["answer"]) for result in results]
    passed = await together(map(_passed, tasks, written), AT_ONCE)
    first, last, answers = (list(column) for column in zip(*passed, strict=True))
    observations = [_OBSERVED.findall(result["trials"][0]["attempt"]) for result in results]
    ours: dict[str, list[Any]] = {
        "feedback": [evaluated(text[0]) if text else None for text in observations],
        "exec_pass": last,
        "answer": answers,
    }
    theirs: dict[str, list[Any]] = {
        "feedback": [evaluated(logged.feedback) for logged in known],
        "exec_pass": [bool(logged.verdict["exec_pass"]) for logged in known],
        "answer": last,
    }
    if any(logged.lesson for logged in known):
        ours["root_exec_pass"] = first
        theirs["root_exec_pass"] = [bool(logged.verdict["root_exec_pass"]) for logged in known]
    measured = Measured({}, Differences(), [model])
    for kind, values in ours.items():
        for index, (here, there) in enumerate(zip(values, theirs[kind], strict=True)):
            if here != there:
                reason = await _why(kind, known[index], written[index], here)
                measured.differences.add(f"{kind}: {reason or UNEXPLAINED}", tasks[index]["id"])
                if kind.endswith("exec_pass") and reason:
                    measured.corrections[kind] = measured.corrections.get(kind, 0) + there - here
    measured.figures.update({kind: sum(values) for kind, values in ours.items() if kind.endswith("exec_pass")})
    return measured


async def _why(kind: str, logged: Logged, written: Sequence[str | None], here: Any) -> str | None:
    """Say why something differs from the log; None if no rule tells.

    Args:
        kind: What differs: the feedback, whether the hidden tests pass, or the answer.
        logged: The log of the task.
        written: The first and the last program, and the answer.
        here: The outcome of the replay.
    """
    first, last, answer = (text or "" for text in written)
    if kind == "answer":
        return _BEST if answer == first != last else None
    data, feedback = logged.task["data"], kind == "feedback"
    program = last if kind == "exec_pass" else first
    tests = "\n".join(data["tests"]) if feedback else data["hidden"]
    reason = explain(Program(program, data["prompt"], tests, logged.feedback if feedback else ""))
    if reason is None and here is True and (await IMPATIENT.measure(logged.task, program))["passed"] < 1:
        return _SLOW
    return reason


async def _passed(task: Task, written: Sequence[str | None]) -> list[bool]:
    """Return which programs pass the hidden tests of a task; the same one runs once."""
    ran = {text: (await WORLD.measure(task, text or ""))["passed"] == 1 for text in dict.fromkeys(written)}
    return [ran[text] for text in written]
