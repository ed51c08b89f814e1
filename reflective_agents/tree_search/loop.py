"""The loop of every tree search: select a job, carry it out, backpropagate its results."""

import asyncio
from typing import NamedTuple, Self

from reflective_agents.models.bills import Bill, billed
from reflective_agents.nodes.step import Step, Update
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.families import TreeContext
from reflective_agents.state.limits import Limit
from reflective_agents.state.outcome import Outcome, limited
from reflective_agents.state.tree import SearchState, TreeNode
from reflective_agents.tree_search.base import Child, Job, ask, newly_pruned, tell, withdraw
from reflective_agents.tree_search.candidates import Branch
from reflective_agents.tree_search.ending import after_job, without_job
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.job_result import JobResult
from reflective_agents.tree_search.lessons import earlier_lessons, own_lessons
from reflective_agents.tree_search.progress import Progress
from reflective_agents.tree_search.report import emit_events, log_entry
from reflective_agents.tree_search.tree_paths import ROOT, parent_of, path

EXPANSIONS = ("expand", "simulate")
"""Kinds of jobs that count as expansions."""
JOBS_IN_A_STEP = 4
"""Jobs of one super-step for each that may be in flight. At its end none is in flight, and the state is stored."""


class InFlight(NamedTuple):
    """A job in flight: what it has spent, and how many calls were planned for it."""

    job: Job
    bill: Bill
    planned: int


class SearchStep:
    """One super-step of a tree search, in which `parallel` jobs are in flight at once; `run` is its loop.

    Jobs in flight are cancelled when the search is over; at a limit or a fault they are finished, for they are paid.

    Args:
        state: The state of the run.
        step: The step of the graph that searches.
        search: The tree search.
    """

    def __init__(self, state: SearchState, step: Step[TreeContext], search: TreeSearch) -> None:
        self.state = state
        self.step = step
        self.search = search
        self.context = step.context
        self.algorithm = search.algorithm
        self.progress = Progress(state)
        self.goes_on = True
        self._outcome: Outcome | None = None
        self._width = self.context.parallel if ROOT in state["stats"] else 1
        self._jobs_left = 1 if self._width == 1 else JOBS_IN_A_STEP * self._width
        self._flight: dict[asyncio.Task[JobResult], InFlight] = {}

    async def run(self) -> Update:
        """Select, carry out and backpropagate until the super-step is over."""
        async with self:
            while self.goes_on:
                while job := self.select():
                    self.start(job)
                for job, result in await self.finished():
                    self.backpropagate(job, result)
        return self.update()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancel what is in flight, wait until it has ended, and take its virtual losses back."""
        flight, self._flight = self._flight, {}
        for task, in_flight in flight.items():
            task.cancel()
            self.progress.stats.update(withdraw(self.progress.stats, in_flight.job))
        await asyncio.gather(*flight, return_exceptions=True)

    def select(self) -> Job | None:
        """Select the next job, as wide as the limits allow; None if there is none now, or the calls do not suffice."""
        if not self._jobs_left or self._outcome or len(self._flight) >= self._width:
            return None
        jobs, changed = ask(self.algorithm, self.progress.stats)
        if not jobs:
            self._end(without_job(self.progress, self.algorithm, self.step))
            return None
        job = jobs[0]
        expansions = self.progress.expansions + len(self._flight)
        if job["kind"] in EXPANSIONS and expansions >= self.context.max_expansions:
            self._end(limited(self.context.limit("max_expansions", self.progress.expansions)))
            return None
        width = self._affordable_width(job) if job["node"] else 1
        if width < 1 or (width < job["width"] and self._flight):
            self._end(limited(self._call_limit(job), "no room for another expansion"))
            return None
        self.progress.stats.update(changed)
        self._jobs_left -= 1
        chosen: Job = {**job, "width": width}
        if width < job["width"]:
            chosen["narrowed"] = True
        return chosen

    def start(self, job: Job) -> None:
        """Run a job as a task, with a bill of its own."""
        with billed() as bill:
            work = self.search.job(self.search, self._branch(job), self.progress.node_by_state)
            task = asyncio.create_task(work.run())
        self._flight[task] = InFlight(job, bill, self.search.calls(job, job["width"]))

    async def finished(self) -> list[tuple[Job, JobResult]]:
        """Wait until a job has finished, and return all that have; the super-step is over when none is in flight, or
        the search has come to its end."""
        is_decided = self._outcome is not None and self._outcome["status"] in ("solved", "answered", "exhausted")
        if is_decided or not self._flight:
            self.goes_on = False
            return []
        done, _ = await asyncio.wait(self._flight, return_when=asyncio.FIRST_COMPLETED)
        return [self._result(task) for task in list(self._flight) if task in done]

    def backpropagate(self, job: Job, result: JobResult) -> None:
        """Pass the results of a job to the algorithm, the tree, the log and the events."""
        progress = self.progress
        at_limit = any(isinstance(reason, LimitReached) for reason in result.stops)
        unfinished = job["kind"] == "judge" or at_limit
        if result.stops and unfinished and not result.children:
            progress.stats.update(withdraw(progress.stats, job))
        children = [self._existing_twin(job, child) for child in result.children]
        new = [child for child in result.children if child in children]
        result.merged += len(result.children) - len(new)
        result.children = new
        changed = tell(self.algorithm, progress.stats, job, children)
        pruned = newly_pruned(progress.stats, changed)
        progress.stats.update(changed)
        progress.expansions += job["kind"] in EXPANSIONS
        progress.tree.update({child.node["id"]: child.node for child in result.children})
        progress.remember(result.keys)
        progress.lessons += result.lessons
        progress.guess = result.guess or progress.guess
        entry = log_entry(job, result, changed, pruned)
        progress.log.append(entry)
        emit_events(self.step, job, result, entry, progress.expansions)
        self._choose_best(result)
        self._outcome = after_job(result, progress, self.algorithm, self.context, self._outcome)

    def update(self) -> Update:
        """Return the update of the state."""
        update = self.progress.update()
        return {**update, "outcome": self._outcome} if self._outcome else update

    def _end(self, outcome: Outcome) -> None:
        """End the run, unless a job in flight may change the outcome."""
        if not self._flight:
            self._outcome = outcome

    @property
    def _reserved_calls(self) -> int:
        """How many calls are kept for an answer: one, as long as there is none."""
        return int(self.progress.best is None)

    def _affordable_width(self, job: Job) -> int:
        """Return how many candidates the remaining calls allow, without those planned for other jobs. Nodes are judged
        all or not at all."""
        planned = sum(max(other.planned - other.bill.calls, 0) for other in self._flight.values())
        left = self.step.meter.calls_left - self._reserved_calls - planned
        narrowest = job["width"] if job["kind"] == "judge" else 1
        for width in range(job["width"], narrowest - 1, -1):
            if self.search.calls(job, width) <= left:
                return width
        return 0

    def _call_limit(self, job: Job) -> Limit:
        """Return the limit of calls, which even the narrowest form of a job would exceed."""
        least = job["width"] if job["kind"] == "judge" else 1
        return self.step.meter.limit("max_model_calls", self.search.calls(job, least) + self._reserved_calls)

    def _branch(self, job: Job) -> Branch:
        nodes = path(self.progress.tree, job["node"])
        may_act = len(nodes) < self.context.max_depth and self.step.meter.calls_left > self._reserved_calls
        judged: list[list[TreeNode]] = []
        if "nodes" in job:
            nodes, judged = self.progress.paths(job["nodes"])
        return Branch(
            job=job,
            conversation=self.state["messages"],
            request=self.state["request"],
            path=nodes,
            lessons=own_lessons(self.progress.lessons),
            earlier=earlier_lessons(self.progress.lessons),
            may_act=may_act,
            reserved_calls=self._reserved_calls,
            judged=judged,
            tree=self.progress.tree,
        )

    def _result(self, task: asyncio.Task[JobResult]) -> tuple[Job, JobResult]:
        job, bill, _ = self._flight.pop(task)
        result = task.result()
        result.calls, result.tokens = bill.calls, bill.tokens
        return job, result

    def _existing_twin(self, job: Job, child: Child) -> Child:
        """Return the earlier child with the same state, where children are made one by one; else the child itself."""
        twin = self.progress.node_by_state(child.key) if "arm" in job else None
        if twin is None or parent_of(twin["id"]) != job["node"]:
            return child
        self.step.emit("merged", with_node=twin["id"])
        return child._replace(node=twin)

    def _choose_best(self, result: JobResult) -> None:
        tree, best = self.progress.tree, self.progress.best
        nodes = [child.node for child in result.children]
        if best:
            nodes.insert(0, tree[best])
        self.progress.choose_best(nodes, self.algorithm)
