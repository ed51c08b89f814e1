"""Choosing among programs by dual execution agreement (CodeT, Chen et al. 2022, arXiv 2207.10397).

The model writes tests, which may be wrong. Programs that pass the same of them form a group, and a group is worth the
number of its programs times the number of the tests that they pass: right programs agree, errors differ.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from reflective_agents.nodes.asking.chat import complete
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import agreement as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.families import TreeContext
from reflective_agents.state.outcome import pluralize
from reflective_agents.tree_search.worlds import TaskWorld

MOST_TESTS = 10
"""Tests that are read of what the model writes."""


class Group(NamedTuple):
    """Programs that pass the same tests.

    Attributes:
        programs: Which programs, by their place.
        samples: How often they were written.
        tests: How many tests they pass.
    """

    programs: list[int]
    samples: int
    tests: int

    @property
    def score(self) -> int:
        """What the group is worth."""
        return self.samples * self.tests


class Agreement(NamedTuple):
    """What the model's tests say of programs.

    Attributes:
        scores: The score of each program (0..1), that of its group; empty if there is no evidence.
        best: The program that is best, of equals the first.
        reason: Why it is the best, in words.
    """

    scores: list[float]
    best: int
    reason: str


def group(passed: Sequence[Sequence[bool]], samples: Sequence[int]) -> list[Group]:
    """Group programs, the best group first.

    Args:
        passed: Of each program, which tests it passes.
        samples: How often each was written.
    """
    alike: defaultdict[tuple[bool, ...], list[int]] = defaultdict(list)
    for program, tests in enumerate(passed):
        alike[tuple(tests)].append(program)
    groups = []
    for tests, programs in alike.items():
        count = sum(samples[program] for program in programs)
        groups.append(Group(programs, count, sum(tests)))
    return sorted(groups, key=lambda group: -group.score)


async def agree(
    step: Step[TreeContext], world: TaskWorld, request: str, programs: Sequence[str], samples: Sequence[int]
) -> Agreement:
    """Let the model write tests, and rank programs by them. Without evidence, the first program remains the best.

    Args:
        step: The node that asks.
        world: The task, whose environment runs tests.
        request: The request, quoted.
        programs: Different answers, the one first that is best otherwise.
        samples: How often each was written.
    """
    try:
        tests = await write_tests(step, world, request)
        passed = await run(step, world, programs, tests)
    except (LimitReached, ModelFailed) as stopped:
        step.emit("agreement", groups=[], stopped=str(stopped))
        return Agreement([], 0, f"no tests of the model's could be run: {stopped}")
    groups = group(passed, samples)
    step.emit("agreement", groups=[{**each._asdict(), "score": each.score} for each in groups])
    best = groups[0]
    if not best.score:
        return Agreement([], 0, "no program passes a test of the model's")
    most = sum(samples) * len(tests)
    scores = [0.0] * len(programs)
    for each in groups:
        for program in each.programs:
            scores[program] = each.score / most
    counts = f"{best.samples} of {pluralize(sum(samples), 'program')} and {best.tests} of {len(tests)}"
    reason = f"{counts} of the model's tests agree"
    return Agreement(scores, best.programs[0], reason)


async def write_tests(step: Step[TreeContext], world: TaskWorld, request: str) -> list[str]:
    """Let the model write tests.

    Raises:
        LimitReached: if a limit forbids it.
        ModelFailed: if there is no test that can be read.
    """
    prompt = prompts.WRITE_TESTS.format_messages(request=request, most=MOST_TESTS)
    text = await complete(step, step.context.model, prompt)
    task = world.environment.with_own_tests(world.start["task"], text, MOST_TESTS)
    tests = list(dict.fromkeys(task.get("data", {}).get("tests", [])))
    step.emit("tests", tests=tests)
    if not tests:
        raise ModelFailed("the model wrote no test that could be read")
    return tests


async def run(
    step: Step[TreeContext], world: TaskWorld, programs: Sequence[str], tests: Sequence[str]
) -> list[list[bool]]:
    """Run tests of programs, `parallel` programs at once, and return which ones each passes.

    Raises:
        LimitReached: if the time of the run is up.
    """
    turn = asyncio.Semaphore(step.context.parallel)

    async def passed(program: str) -> list[bool]:
        async with turn:
            return await world.environment.passed(world.start["task"], program, tests)

    bound = asyncio.timeout(step.meter.seconds_left)
    try:
        async with bound:
            return await at_once([passed(program) for program in programs])
    except TimeoutError:
        if not bound.expired():
            raise
        raise LimitReached(step.meter.limit("max_seconds")) from None
