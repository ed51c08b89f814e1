"""Programs as verifiers, all in the sandbox: tests of what the answer holds, and programs that check the answer."""

import ast
import asyncio
from pathlib import Path

from reflective_agents.environments.program_text import find_program
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.finding import Case, Finding, NoVerdict, bounded
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, reason_of
from reflective_agents.state.verifier_forms import Command, Form, ProgramTests
from reflective_agents.tools.sandbox import choose_enclosure, run_program
from reflective_agents.tools.verdict import run_tests

MOST_BYTES = 1_000_000
"""Size of a file of tests, or of a program."""
SECONDS_A_TEST = 5.0
KILLED = 128
"""What the exit code of a program begins with that a signal has ended."""
SHOWN = 5
"""Failed tests that the feedback names, each by its last line."""


async def check_program(form: Form) -> None:
    """Refuse a verifier whose file cannot be read, or for which there is no sandbox.

    Raises:
        Misuse: if so.
    """
    if isinstance(form, ProgramTests):
        await _texts_of(form)
    elif isinstance(form, Command):
        await _read(form.command[0])
    else:
        return
    await choose_enclosure(unsafe_subprocess=False)


async def tests(step: Step[Context], verifier: ProgramTests, case: Case) -> Finding:
    """Run the tests of the program in an answer. The score is the share that passes."""
    program = find_program(case.answer, verifier.entry_point)
    texts = await _texts_of(verifier)
    report = await run_tests(program, texts, verifier.entry_point, timeout=_seconds(step, SECONDS_A_TEST))
    failed: list[str] = []
    for found in report.cases:
        if not found.passed:
            failed.append(f"{_last_line(found.test)} # output: {found.output}")
    feedback = "\n".join(["Tests failed:", *failed[:SHOWN]]) if failed else ""
    return Finding(report.fraction, bounded(feedback))


async def command(step: Step[Context], verifier: Command, case: Case) -> Finding:
    """Run a program with the answer as its input: the exit code 0 accepts, what it prints is the feedback.

    Raises:
        NoVerdict: if it runs out of time, or Python ends with an error.
    """
    path, *_ = verifier.command
    text = await _read(path)
    program = f"import sys\nsys.argv = {verifier.command!r}\nexec(compile({text!r}, {path!r}, 'exec'))"
    result = await run_program(program, case.answer, timeout=_seconds(step, step.meter.seconds_left))
    if result.timed_out:
        raise NoVerdict("it runs out of time")
    if result.exit_code and result.exit_code > KILLED:
        signal = f"signal {result.exit_code - KILLED}"
        raise NoVerdict(f"it is killed: {result.stderr.strip()[-300:] or signal}")
    if result.exit_code and "Traceback (most recent call last)" in result.stderr:
        raise NoVerdict(f"it raises {result.stderr.strip().splitlines()[-1][:300]}")
    accepted = result.exit_code == 0
    return Finding(float(accepted), "" if accepted else bounded(result.stdout.strip() or result.stderr))


def _last_line(test: str) -> str:
    """Return the assertion, or the call of a function of a file, which the writer need not see whole."""
    return test.strip().splitlines()[-1]


def _seconds(step: Step[Context], most: float) -> float:
    return max(min(most, step.meter.seconds_left, getattr(step.context, "verifier_timeout", most)), 0.01)


async def _texts_of(verifier: ProgramTests) -> list[str]:
    """Return the tests: those given, or each function `test_...` of a file, called in a text of its own."""
    if not isinstance(verifier.tests, str):
        return verifier.tests
    text = await _read(verifier.tests)
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Misuse(f"the tests in {verifier.tests} cannot be read: {reason_of(error)}") from error
    names = [part.name for part in body if isinstance(part, ast.FunctionDef) and part.name.startswith("test")]
    return [f"{text}\n{name}()" for name in names] or [text]


async def _read(path: str) -> str:
    def read() -> str:
        with Path(path).open("rb") as file:
            return file.read(MOST_BYTES + 1).decode()

    try:
        text = await asyncio.to_thread(read)
    except (OSError, ValueError) as error:
        raise Misuse(f"the verifier's file {path} cannot be read: {reason_of(error)}") from error
    if len(text) > MOST_BYTES:
        raise Misuse(f"the verifier's file {path} is longer than {MOST_BYTES:,} characters")
    return text
