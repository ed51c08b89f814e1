"""Choosing among programs by the model's own tests: `python -m bench.programs` makes the table of docs/programs.md.

    python -m bench.programs [FOLDER] [--tasks NUMBER] [--seed NUMBER] [--programs 5,10] [--texts 100]

The folder holds `codet_humaneval.*.jsonl.gz` and `bench_humaneval.*.jsonl.gz`. Programs run in the sandbox.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

from bench.game24.auto import Won, difference
from bench.game24.cost import interval
from bench.options import parser_of
from bench.programs.choosing import WAYS, agreed, chosen
from bench.programs.recorded import Problem, read_problems
from bench.programs.world import HIDDEN_SECONDS, SECONDS, Remembering
from bench.recorded import RECORDED
from reflective_agents.tree_search.agreement import Group

PROGRAMS, TEXTS = (5, 10), 100
"""Programs among which is chosen, and texts of tests that the model wrote, as many as CodeT used."""
AT_ONCE = 2
"""Tasks at the same time."""
WORTH: Mapping[str, Callable[[Group], float]] = {
    "CodeT's agreement, as in the paper: programs times tests": lambda group: group.score,
    "CodeT's agreement, as in its code: the root of programs, times tests": lambda group: (
        sqrt(group.samples) * group.tests
    ),
}
AGREEMENT = next(iter(WORTH))
ONE, ANY = "one program", "any of as many programs"
ROWS = (ONE, *WAYS, *WORTH, ANY)


async def solved(problem: Problem, counts: Sequence[int]) -> dict[str, list[float]]:
    """Measure by the hidden tests what is chosen among so many programs: 0 or 1, or a chance."""
    tests, hidden = Remembering(SECONDS), Remembering(HIDDEN_SECONDS)
    found: dict[str, list[float]] = {name: [] for name in ROWS}
    tested = problem.tested()
    for count in counts:
        for name, way in WAYS.items():
            task = tested if way.tested else problem.task
            found[name].append(await _right(problem, await chosen(way, problem, task, tests, count), hidden))
        for name, worth in WORTH.items():
            program = await agreed(problem, tested, tests, count, worth)
            found[name].append(await _right(problem, program, hidden))
        right = [await _right(problem, program, hidden) for program in problem.programs[:count]]
        found[ONE].append(float(np.mean(right)))
        found[ANY].append(max(right))
    return found


async def _right(problem: Problem, answer: str, hidden: Remembering) -> float:
    return (await hidden.measure(problem.task, answer))["passed"]


async def measured(problems: Sequence[Problem], counts: Sequence[int]) -> dict[str, list[Won]]:
    """Measure all problems: for each way and number of programs what is solved, problem by problem."""
    turn = asyncio.Semaphore(AT_ONCE)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("tasks", total=len(problems))

        async def measure(problem: Problem) -> dict[str, list[float]]:
            async with turn:
                rates = await solved(problem, counts)
            progress.advance(bar)
            return rates

        each = await asyncio.gather(*map(measure, problems))
    return {name: list(np.array([found[name] for found in each]).T) for name in ROWS}


def report(found: Mapping[str, Sequence[Won]], counts: Sequence[int]) -> Iterator[str]:
    """Format the table: the share of the tasks that is solved, with its 95 % interval."""
    yield f"| solved, % | {' | '.join(f'{count} programs' for count in counts)} |"
    yield f"|---|{'--:|' * len(counts)}"
    for name, row in found.items():
        yield f"| {name} | {' | '.join(map(_cell, row))} |"


def _cell(won: Won) -> str:
    low, high = interval(float(won.sum()), len(won))
    return f"{100 * won.mean():.1f} ({100 * low:.0f} to {100 * high:.0f})"


def compared(found: Mapping[str, Sequence[Won]]) -> Iterator[str]:
    """Say how many more tasks the agreement solves with most programs than each of the others, and the interval."""
    best = found[AGREEMENT][-1]
    for name in (ONE, *WAYS, *[name for name in WORTH if name != AGREEMENT]):
        low, high = difference(best, found[name][-1])
        yield f"- {AGREEMENT} - {name}: {(best - found[name][-1]).sum():+.1f} tasks ({low:+.0f} to {high:+.0f})"


def main() -> None:
    """Print the table, and what the agreement gains."""
    ask = parser_of("bench.programs", __doc__)
    ask.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    ask.add_argument("--tasks", type=int, help="most tasks, drawn by the seed; default: all")
    ask.add_argument("--seed", type=int, default=0, help="the order of tasks, programs and tests")
    ask.add_argument("--programs", type=lambda text: [*map(int, text.split(","))], default=list(PROGRAMS))
    ask.add_argument("--texts", type=int, default=TEXTS, help="texts of tests for each task")
    options = ask.parse_args()
    if options.quick:
        options.tasks, options.programs, options.texts = 2, [2], 2
    problems = read_problems(options.folder)
    some = random.Random(options.seed).sample(problems, min(options.tasks or len(problems), len(problems)))
    most = max(options.programs)
    found = asyncio.run(
        measured([problem.drawn(most, options.texts, options.seed) for problem in some], options.programs)
    )
    print(f"{len(some)} tasks, {options.texts} texts of tests for each\n")
    print("\n".join([*report(found, options.programs), "", *compared(found)]))


if __name__ == "__main__":
    main()
