"""Runs tasks with settings that change, such as prompts that are tried, within one budget."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from reflective_agents.environments.base import Task
from reflective_agents.evals.budget import Budget
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.results import Result
from reflective_agents.evals.run import Finished, Graph, attempt
from reflective_agents.models.cache import Cache
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached

Words = dict[str, str]
"""Texts by the names of templates, as the setting `prompts` takes them."""


@dataclass
class Runner:
    """Runs tasks with settings, within a budget.

    Attributes:
        graph: The strategy, compiled without a checkpointer.
        dataset: Whose environment measures the answers.
        context: The settings of every run.
        budget: What all runs may spend together.
        cache: What was answered before, by which a search that was stopped goes on: it begins anew, and pays for
            nothing twice. None for none.
        at_once: How many tasks are under way at once, from 1.
    """

    graph: Graph
    dataset: Dataset
    context: Context
    budget: Budget = field(default_factory=Budget)
    cache: Cache | None = None
    at_once: int = 4

    async def run(self, task: Task, prompts: Words | None = None) -> Finished:
        """Run a task, with other prompts if there are some.

        Raises:
            LimitReached: if the budget has cut it short: what came of it says nothing.
        """
        context = self.context
        if prompts:
            context = type(context).model_validate({**dict(context), "prompts": prompts})
        with self.budget.task() as cut:
            finished = await attempt(self.graph, self.dataset.environment, task, context, self.cache)
        if cut.short and self.budget.reached:
            raise LimitReached(self.budget.reached)
        return finished

    async def run_all(self, tasks: Sequence[Task], prompts: Words) -> list[Result]:
        """Run tasks, some of them at once; one that is there twice, as where GEPA fills up a batch, runs once."""
        by_id, free = {task["id"]: task for task in tasks}, asyncio.Semaphore(self.at_once)

        async def run(task: Task) -> Result:
            async with free:
                return (await self.run(task, prompts)).result

        try:
            async with asyncio.TaskGroup() as group:
                running = {name: group.create_task(run(task)) for name, task in by_id.items()}
        except ExceptionGroup as faults:
            raise faults.exceptions[0] from faults
        return [running[task["id"]].result() for task in tasks]
