"""Fills in what the answers of a task are worth: that of the run, and those of its trials."""

from collections.abc import Sequence
from typing import Any, cast

from reflective_agents.environments.base import Task
from reflective_agents.evals.results import Attempt, Result
from reflective_agents.evals.scorers import Score, Scorer
from reflective_agents.graphs.trials import rank
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.run import NOTHING_SPENT, Usage
from reflective_agents.state.trial import Trial


async def score(result: Result, scorer: Scorer, task: Task, trials: Sequence[Trial] = ()) -> None:
    """Fill in what the answer of a result is worth, and what those of its trials are: every trial, and the best one up
    to each.

    Raises:
        LimitReached, ModelFailed: if a model that grades does not; then it is not known whether the answer is correct.
    """
    scoring = Scoring(scorer, task)
    try:
        if result["answer"] is not None and scorer.measurable(task):
            await fill_in(result, scoring, result["answer"])
        if result["correct"] is not None:
            result["trials"] = await _attempts(scoring, trials)
    except (LimitReached, ModelFailed):
        result["correct"], result["trials"] = None, []
        raise
    finally:
        if scoring.usage:
            result["grading"] = scoring.usage


async def fill_in(result: Result, scoring: "Scoring", answer: str) -> None:
    """Fill in what an answer is worth."""
    scored = await scoring.of(answer)
    result["scores"], result["correct"] = scored.scores, await scoring.is_correct(answer)
    if scored.extracted is not None and scored.extracted != answer:
        result["extracted"] = scored.extracted


class Scoring:
    """Scores the answers to a task, each of them once.

    Attributes:
        usage: What models that graded have taken; None if none did.
    """

    def __init__(self, scorer: Scorer, task: Task) -> None:
        self._scorer, self._task = scorer, task
        self._scored: dict[str, Score] = {}
        self.usage: Usage | None = None

    async def of(self, answer: str) -> Score:
        """Score an answer."""
        if answer not in self._scored:
            scored = await self._scorer.score(self._task, answer)
            self._scored[answer] = scored
            if scored.usage:
                self.usage = total(self.usage or NOTHING_SPENT, scored.usage)
        return self._scored[answer]

    async def is_correct(self, answer: str | None) -> bool:
        """Return whether an answer is correct; none is not."""
        if answer is None:
            return False
        scored = await self.of(answer)
        return self._scorer.is_correct(scored.scores)


def total(first: Usage, second: Usage) -> Usage:
    """Add up what two parts have spent."""
    return cast(Usage, {name: first[name] + second[name] for name in NOTHING_SPENT})  # type: ignore[literal-required]


def _worth(trial: Trial) -> tuple[bool, Any]:
    """Rank a trial; any with an answer is above those without."""
    return trial["answer"] is not None, rank(trial)


async def _attempts(scoring: Scoring, trials: Sequence[Trial]) -> list[Attempt]:
    attempts: list[Attempt] = []
    for number, trial in enumerate(trials, 1):
        best = max(trials[:number], key=_worth)
        attempts.append(
            {
                "answer": trial["answer"],
                "solved": trial["solved"],
                "correct": await scoring.is_correct(trial["answer"]),
                "best_correct": await scoring.is_correct(best["answer"]),
            }
        )
    return attempts
