"""Choosing among programs by the model's own tests: what each way chooses, and what is read of the records."""

import re
from pathlib import Path

import numpy as np
import pytest

from bench.programs import __main__ as programs
from bench.programs.choosing import WAYS, agreed, chosen
from bench.programs.recorded import PER_TEXT, Problem, read_problems
from bench.programs.world import TOGETHER, Remembering
from reflective_agents.environments.base import Environment, Task
from reflective_agents.environments.programming import Programming
from reflective_agents.state.errors import Misuse
from reflective_agents.tools.verdict import Case, Report

PAGE = (Path(__file__).parents[2] / "docs" / "programs.md").read_text()
WRITTEN = [f"```python\ndef f(x):\n    return {text}\n```" for text in ("x", "x + 1", "x * 2", "x + 1")]
TESTS = ["assert f(1) == 2", "assert f(2) == 4", "assert f(0) == 1", "assert f(1) == 2"]
TASK: Task = {"id": "f", "question": "Write f.", "data": {"entry_point": "f", "prompt": "", "hidden": "", "tests": []}}
PROBLEM = Problem(TASK, WRITTEN, [TESTS[:2], TESTS[2:], []])


@pytest.fixture(autouse=True)
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run these harmless programs here, without a sandbox, and list the tests that ran."""
    ran: list[str] = []

    async def run(self: Programming, task: Task, program: str, tests: list[str]) -> Report:
        ran.extend(tests)
        return Report(tuple(Case(test, passes(program, test), "") for test in tests), sandboxed=False)

    monkeypatch.setattr(Programming, "_run", run)
    monkeypatch.setattr(Programming, "ready", Environment.ready)
    return ran


def passes(program: str, test: str) -> bool:
    known: dict[str, object] = {}
    exec(program, known)
    try:
        exec(test, known)
    except AssertionError:
        return False
    return True


async def test_each_way_chooses_by_its_evidence() -> None:
    world, tested = Remembering(1), PROBLEM.tested()
    vote, best, agreement, auto = WAYS.values()
    assert await chosen(vote, PROBLEM, TASK, world, 4) == WRITTEN[1]
    for way in (best, auto):
        assert "x + 1" in await chosen(way, PROBLEM, tested, world, 4), "it passes three of four tests, x * 2 the same"
    assert "x + 1" in await chosen(agreement, PROBLEM, TASK, world, 4)
    for worth in programs.WORTH.values():
        assert await agreed(PROBLEM, tested, world, 4, worth) == WRITTEN[1], "two programs that agree"
        assert await agreed(PROBLEM, tested, world, 1, worth) == WRITTEN[0]


async def test_without_tests_the_first_program_is_taken() -> None:
    nothing = Problem(TASK, WRITTEN, [[], []])
    for way in [way for way in WAYS.values() if way.tested]:
        assert await chosen(way, nothing, nothing.tested(), Remembering(1), 4) == WRITTEN[0]


async def test_a_test_of_a_program_runs_once(executed: list[str]) -> None:
    world, tested = Remembering(1), PROBLEM.tested()
    assert await world.passed(tested, WRITTEN[1], TESTS) == [True, False, True, True]
    assert await world.passed(tested, WRITTEN[1], TESTS) == [True, False, True, True]
    assert executed == TESTS[:3]


async def test_a_program_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    async def hang(self: Programming, task: Task, program: str, tests: list[str]) -> Report:
        ran.extend(tests)
        return Report(tuple(Case(test, False, "", True) for test in tests), sandboxed=True)

    monkeypatch.setattr(Programming, "_run", hang)
    many: Task = {**TASK, "data": {**TASK["data"], "tests": [f"assert f({n})" for n in range(3 * TOGETHER)]}}
    assert not any(await Remembering(1).passed(many, WRITTEN[0], many["data"]["tests"]))
    assert len(ran) == TOGETHER


def test_the_table_has_a_row_for_each_way_and_a_column_for_each_number_of_programs() -> None:
    won = {name: [np.array([1.0, 0.0]), np.array([1.0, 1.0])] for name in programs.ROWS}
    head, _, *rows = programs.report(won, [5, 10])
    assert head == "| solved, % | 5 programs | 10 programs |"
    assert [row.split(" | ")[0][2:] for row in rows] == [*programs.ROWS]
    assert rows[0].endswith("| 50.0 (1 to 99) | 100.0 (16 to 100) |")
    assert next(programs.compared(won)).endswith(": +0.0 tasks (+0 to +0)")


def test_the_page_has_every_way() -> None:
    assert re.findall(r"^\| ([^|]+) \| [\d.]+ \(", PAGE, re.MULTILINE) == [*programs.ROWS]


@pytest.mark.thorough
def test_records_are_read(recorded: Path, tmp_path: Path) -> None:
    problems = read_problems(recorded)
    assert len(problems) == 105
    assert {len(problem.programs) for problem in problems} == {len(problem.tests) for problem in problems} == {100}
    assert max(len(text) for problem in problems for text in problem.tests) == PER_TEXT
    assert problems[0].drawn(5, 5, 0) == problems[0].drawn(5, 5, 0) != problems[0].drawn(5, 5, 1)
    with pytest.raises(Misuse, match="holds no bench_humaneval"):
        read_problems(tmp_path)
