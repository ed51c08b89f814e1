"""The environment of programs, which runs each test of a program once, however many strategies ask for it."""

from reflective_agents.environments.base import Task
from reflective_agents.environments.programming import Programming
from reflective_agents.tools.verdict import Case, Report

SECONDS, HIDDEN_SECONDS = 1.0, 5.0
"""What a test may take; what all hidden tests of a task together may."""
TOGETHER = 25
"""Tests after which a program that hangs is given up: it fails the others."""


class Remembering(Programming):
    """Functions to be written; what a test says of a program is kept."""

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout=timeout)
        self._known: dict[tuple[str, str], Case] = {}

    async def _run(self, task: Task, program: str, tests: list[str]) -> Report:
        for case in await self._cases(task, program, [test for test in tests if (program, test) not in self._known]):
            self._known[program, case.test] = case
        return Report(tuple(self._known[program, test] for test in tests), sandboxed=True)

    async def _cases(self, task: Task, program: str, tests: list[str]) -> list[Case]:
        new, cases = list(dict.fromkeys(tests)), list[Case]()
        while len(cases) < len(new):
            report = await super()._run(task, program, new[len(cases) : len(cases) + TOGETHER])
            cases += report.cases
            if report.timed_out:
                return cases + [Case(test, False, "not run: others hang", True) for test in new[len(cases) :]]
        return cases
