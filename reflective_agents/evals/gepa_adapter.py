"""What GEPA calls while it looks for better prompts: from its own thread, whose coroutines the event loop runs."""

import asyncio
import concurrent.futures
import re
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from gepa.core.adapter import EvaluationBatch, ProposalFn

from reflective_agents.environments.base import Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.results import Result
from reflective_agents.evals.runner import Runner, Words
from reflective_agents.evals.tuned_prompts import PLACEHOLDER
from reflective_agents.state.errors import Misuse

Batch = EvaluationBatch[str, Result]
"""What came of some tasks, and the tasks in words."""
T = TypeVar("T")


class Loop:
    """Lets a thread wait for coroutines of an event loop, until it is stopped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waits_for: concurrent.futures.Future[Any] | None = None
        self._stopped = False

    def wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what a coroutine returns. Where one has raised, no other begins.

        Raises:
            concurrent.futures.CancelledError: if this was stopped.
        """
        self.check()
        future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        self._waits_for = future
        if self._stopped:
            future.cancel()
        return future.result()

    def check(self) -> None:
        """Raise again what the last coroutine has raised: GEPA passes over an author that fails."""
        if self._waits_for:
            self._waits_for.result()

    def stop(self) -> None:
        """Let the thread wait for nothing more."""
        self._stopped = True
        if self._waits_for:
            self._waits_for.cancel()


@dataclass
class Adapter:
    """What GEPA has to know of the system that it tunes: how well a candidate does, and what went wrong."""

    runner: Runner
    loop: Loop
    propose_new_texts: ProposalFn | None = None
    """GEPA's own way to propose a text is used."""
    whole: Callable[[Words], Words] = lambda candidate: candidate
    """Makes prompts of the texts of a candidate."""
    used: set[str] | None = None
    """The templates that runs so far have used: those of a candidate must be among them. None if nobody notes them."""

    def evaluate(self, batch: list[Task], candidate: Words, capture_traces: bool = False) -> Batch:
        """Run tasks with the prompts of a candidate. A prompt that cannot be used scores 0, and its result says why.

        Raises:
            Misuse: if no run has used one of the templates.
        """
        results = self.loop.wait(lambda: self.runner.run_all(batch, self.whole(candidate)))
        if self.used is not None and (unused := candidate.keys() - self.used):
            raise Misuse(f"no run has used {_listed(unused)}: name some of {_listed(self.used)}")
        environment = resolve_environment(self.runner.dataset.environment)
        scores = [result["scores"].get(environment.figure, 0.0) for result in results]
        requests = [environment.request(task) for task in batch]
        return Batch(outputs=results, scores=scores, trajectories=requests if capture_traces else None)

    def make_reflective_dataset(
        self, candidate: Words, eval_batch: Batch, components_to_update: list[str]
    ) -> dict[str, list[dict[str, str]]]:
        """Say in words what came of each task, and which placeholders a text has to keep."""
        batch = zip(eval_batch.trajectories or [], eval_batch.outputs, eval_batch.scores, strict=True)
        reports = [_report(*each) for each in batch]
        return {name: [*reports, *_rules(candidate[name])] for name in components_to_update}


def _report(task: str, result: Result, score: float) -> dict[str, str]:
    outcome = result["outcome"]
    why = result["error"] or (outcome["reason"] if outcome else "")
    right = f" The right answer is: {result['gold']}." if result["gold"] is not None else ""
    feedback = f"Score {score:g}.{right} {why}".rstrip()
    return {"Inputs": task, "Generated Outputs": result["answer"] or "", "Feedback": feedback}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _rules(text: str) -> list[dict[str, str]]:
    keep = " ".join(re.findall(PLACEHOLDER, text))
    return [{"Rule": f"Keep these placeholders as they are: {keep}"}] if keep else []
