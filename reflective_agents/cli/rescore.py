"""`reflect eval --rescore`: the answers of a finished run, measured anew."""

import asyncio
from pathlib import Path

from reflective_agents.cli.checks import need_for_statistics
from reflective_agents.cli.output import print_table, say
from reflective_agents.evals.datasets import load_dataset
from reflective_agents.evals.report import facts
from reflective_agents.evals.rescore import Rescored, rescore
from reflective_agents.models.providers import close_models

SHOWN = 10
"""Tasks with other scores that are named."""


def rescore_run(folder: str, dataset: str | None, scorer: str | None = None) -> int:
    """Measure the answers of a run anew, and print its summary.

    Returns:
        The exit code.

    Raises:
        Misuse: as `evals.rescore.rescore`.
    """
    need_for_statistics()
    tasks = {task["id"]: task for task in load_dataset(Path(dataset)).tasks} if dataset else None

    async def run() -> Rescored:
        try:
            return await rescore(Path(folder), tasks, scorer=scorer)
        finally:
            await close_models()

    done = asyncio.run(run())
    print_table(("figure", "value"), facts(done.after))
    named = ""
    if done.changed:
        more = " ..." if len(done.changed) > SHOWN else ""
        named = f": {', '.join(done.changed[:SHOWN])}{more}"
    say(f"{len(done.changed)} of {done.after['finished']} results have other scores now{named}")
    say(f"correct: {done.before['correct']} before, {done.after['correct']} now")
    return 0
