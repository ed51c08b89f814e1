"""Running a program's tests, so that the program has no part in the verdict (see `tools/inside/main.py`)."""

import asyncio
import json
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from reflective_agents.text.structure import Json
from reflective_agents.tools.sandbox import Limits, choose_enclosure, message, start, wire

STARTUP_SECONDS = 5.0
"""What the two processes may take to start, beside the time that the program takes to load."""
_MAX_REPORT = 65_536


@dataclass(frozen=True)
class Case:
    """How one test went."""

    test: str
    passed: bool
    output: str
    """What a failed test saw: the value that was compared, or the error. Empty if it passed."""
    timed_out: bool = False


@dataclass(frozen=True)
class Report:
    """How all tests of a program went, in their order."""

    cases: tuple[Case, ...]
    sandboxed: bool
    """False if program and tests ran as plain processes, without protection."""

    @property
    def fraction(self) -> float:
        """The share of the tests that passed, from 0 to 1; 0 if there is none."""
        passed = sum(case.passed for case in self.cases)
        return passed / len(self.cases) if self.cases else 0.0

    @property
    def timed_out(self) -> bool:
        """Whether a test ran out of time."""
        return any(case.timed_out for case in self.cases)


async def run_tests(
    program: str,
    tests: Sequence[str] | str,
    entry_point: str,
    *,
    setup: str = "",
    timeout: float = 5.0,  # noqa: ASYNC109 - running out of time is a result here
    memory_mb: int = 512,
    unsafe_subprocess: bool = False,
) -> Report:
    """Run tests of a program.

    The tests call the program across two sandboxes: arguments and results are plain data (numbers, texts, bytes, None,
    lists, tuples, sets, dictionaries), exceptions of Python's own, and the program's own objects, which the tests can
    hold, call, read, set and iterate, but not compare. Each test meets the program as it was when it was loaded.

    Args:
        program: the text of a module.
        tests: Python statements, mostly assertions; each text is one test.
        entry_point: the function that the program is to define.
        setup: trusted statements, carried out before the program and, separately, before the tests: what they define
            the program may replace for itself, but not for the tests, save the entry point.
        timeout: seconds that each test may take, and the program to load; above 0.
        memory_mb: memory that each process may have, in MiB.
        unsafe_subprocess: whether plain processes may be used where there is no sandbox.

    Raises:
        SandboxMissing: if there is no sandbox and plain processes are not allowed.
    """
    enclosure = await choose_enclosure(unsafe_subprocess)
    texts = [tests] if isinstance(tests, str) else list(tests)
    job = {"program": program, "entry_point": entry_point, "setup": setup}
    cases: list[Case] = []
    while len(cases) < len(texts):  # after a test that broke or hung, the others get new processes
        cases += await _judge(job, texts[len(cases) :], enclosure, Limits(timeout, memory_mb))
    return Report(tuple(cases), bool(enclosure))


async def _judge(job: dict[str, str], tests: list[str], enclosure: str, limits: Limits) -> list[Case]:
    """Run tests until one breaks or hangs; return how they went, that one included."""
    cases: list[Case] = []
    for_program, for_tests = socket.socketpair()
    async with AsyncExitStack() as stack:
        stack.callback(for_program.close)
        stack.callback(for_tests.close)
        _, program, program_end = await stack.enter_async_context(wire())
        reports, judge, judge_end = await stack.enter_async_context(wire())
        await stack.enter_async_context(start("program", enclosure, program_end, peer=for_program, limits=limits))
        all_tests = Limits(limits.seconds * len(tests), limits.memory_mb)
        await stack.enter_async_context(
            start("tests", enclosure, judge_end, judge_end, peer=for_tests, limits=all_tests)
        )
        program.write(message(job))
        judge.write(message({**job, "program": "", "tests": tests}))
        loaded = await _report(reports, limits.seconds + STARTUP_SECONDS, "The program could not be loaded")
        if loaded.get("failed") is not None:
            return [_case(test, loaded) for test in tests]
        for test in tests:
            report = await _report(reports, limits.seconds, "The test was not carried out to its end")
            cases.append(_case(test, report))
            if "failed" in report or report.get("last"):
                break
    return cases


def _case(test: str, report: dict[str, Json]) -> Case:
    text = str(report.get("output") or report.get("failed") or "")
    # One line without what a terminal obeys: of several, one could pose as the list of tests that passed.
    output = "".join(character if character.isprintable() else " " for character in text)
    return Case(test, report.get("passed") is True, output, report.get("timed_out") is True)


async def _report(reports: asyncio.StreamReader, seconds: float, what: str) -> dict[str, Json]:
    """Read one report; where none comes, say what that means."""
    try:
        async with asyncio.timeout(seconds):
            length = int.from_bytes(await reports.readexactly(4), "big")
            # The length comes from a process that runs foreign code; what is cut off is no JSON, and the test
            # has failed.
            report = json.loads(await reports.readexactly(min(length, _MAX_REPORT)))
    except TimeoutError:
        return {"failed": f"{what}: no end within {seconds:g} seconds.", "timed_out": True}
    except (EOFError, ConnectionError, ValueError, RecursionError):
        return {"failed": f"{what}: a process ended, perhaps for want of memory."}
    return report if isinstance(report, dict) else {"failed": f"{what}."}
