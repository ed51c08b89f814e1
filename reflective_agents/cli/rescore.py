"""`reflect eval --rescore`: the answers of a finished run, measured anew."""

import asyncio
from pathlib import Path

from reflective_agents.cli.checks import need_for_statistics
from reflective_agents.cli.output import print_table, say
from reflective_agents.cli.run_folders import folders_of
from reflective_agents.evals.datasets import load_dataset
from reflective_agents.evals.report import facts
from reflective_agents.evals.rescore import Rescored, rescore
from reflective_agents.models.providers import close_models
from reflective_agents.state.errors import Misuse

SHOWN = 10
"""Tasks with other scores that are named."""


def rescore_run(name: str, dataset: str | None, scorer: str | None = None) -> int:
    """Measure the answers of a run anew, and print its summary.

    Args:
        name: The folder of the run, its name in the data folder, or the beginning of that.
        dataset: The file of its tasks, where the results do not suffice.
        scorer: What scores them now; None for what has scored them before.

    Returns:
        The exit code.

    Raises:
        Misuse: as `evals.rescore.rescore`, or if several runs begin so.
    """
    need_for_statistics()
    folder, *others = folders_of(name)
    if others:
        raise Misuse(f"--rescore takes one run: {name} may be {', '.join(run.name for run in (folder, *others))}")
    tasks = {task["id"]: task for task in load_dataset(Path(dataset)).tasks} if dataset else None

    async def run() -> Rescored:
        try:
            return await rescore(folder, tasks, scorer=scorer)
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
