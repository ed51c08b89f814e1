"""Two or more runs side by side, on the tasks they share; the first is what the others are compared with."""

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean

from typing_extensions import TypedDict

from reflective_agents.evals.results import About, Result
from reflective_agents.evals.summary import CONFIDENCE, Interval, cost_of, spent_on, wilson
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject

Run = tuple[str, About, Mapping[str, Result]]
"""A run: its name, what was run, and its results."""


class Difference(TypedDict):
    """The mean difference to the first run, task by task, with its interval (95 %, bootstrap)."""

    mean: float
    interval: Interval | None
    """None where a single task is shared."""


class Versus(TypedDict):
    """A run against the first one."""

    wins: int
    """Tasks that only this run has right."""
    losses: int
    """Tasks that only the first run has right."""
    p_value: float
    """How probable a difference of this size, or a larger one, is by chance (exact McNemar test, two-sided)."""
    accuracy: Difference
    cost: dict[str, Difference]
    """Of model calls, tokens, seconds and dollars, over the tasks that crashed in neither."""


class Column(TypedDict):
    """A run on the shared tasks."""

    run: str
    strategy: str
    settings: JsonObject
    """Those that all runs have, and in which they differ; with the scorer, None for the environment's own measure."""
    correct: int
    accuracy: float
    interval: Interval
    cost: dict[str, float]
    """Means of model calls, tokens, seconds and dollars, without tasks that crashed."""
    versus_first: Versus | None
    """None for the first."""


class Comparison(TypedDict):
    """Runs side by side."""

    shared: int
    """Tasks that every run has a measured result of."""
    not_shared: int
    """Tasks that some runs have, but not all."""
    runs: list[Column]


def compare(runs: Sequence[Run]) -> Comparison:
    """Compare runs on the tasks that all of them have measured: the same id, question and gold answer.

    Raises:
        Misuse: if there are fewer than two runs, or no shared tasks.
    """
    if len(runs) < 2:
        raise Misuse("there is nothing to compare: name two runs or more")
    keyed = [_measured(results) for _, _, results in runs]
    in_all = set.intersection(*map(set, keyed))
    if not in_all:
        raise Misuse("the runs share no measured task: compare runs on the same data set")
    shared = [key for key in keyed[0] if key in in_all]
    # Figures of two scorers are no difference between the runs.
    settings = _differing([{**about["settings"], "scorer": about.get("scorer")} for _, about, _ in runs])
    columns: list[Column] = []
    first: list[Result] | None = None
    for (name, about, _), differing, measured in zip(runs, settings, keyed, strict=True):
        results = [measured[key] for key in shared]
        columns.append(_column(name, about["strategy"], differing, results, first))
        first = first or results
    return {
        "shared": len(shared),
        "not_shared": len(set().union(*keyed)) - len(shared),
        "runs": columns,
    }


def mcnemar(wins: int, losses: int) -> float:
    """Return the two-sided p value of the exact McNemar test; 1 where nothing differs."""
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def _measured(results: Mapping[str, Result]) -> dict[tuple[str, str, str | None], Result]:
    measured: dict[tuple[str, str, str | None], Result] = {}
    for result in results.values():
        if result["correct"] is not None:
            measured[result["id"], result["question"], result["gold"]] = result
    return measured


def _differing(settings: Sequence[JsonObject]) -> list[JsonObject]:
    """Leave of each run's settings those that all have, and that are not the same in all."""
    in_all = set.intersection(*map(set, settings))
    differing: list[JsonObject] = [{} for _ in settings]
    for name in settings[0]:
        values = [each[name] for each in settings] if name in in_all else []
        if any(value != values[0] for value in values):
            for each, value in zip(differing, values, strict=True):
                each[name] = value
    return differing


def _column(
    name: str, strategy: str, settings: JsonObject, results: list[Result], first: list[Result] | None
) -> Column:
    correct = sum(bool(result["correct"]) for result in results)
    measured = [result for result in results if result["usage"]]
    costs: dict[str, float] = {}
    for cost in spent_on(measured):
        costs[cost] = fmean(cost_of(result, cost) for result in measured)
    return {
        "run": name,
        "strategy": strategy,
        "settings": settings,
        "correct": correct,
        "accuracy": correct / len(results),
        "interval": wilson(correct, len(results)),
        "cost": costs,
        "versus_first": _versus(results, first) if first is not None else None,
    }


def _versus(results: list[Result], first: list[Result]) -> Versus:
    pairs = list(zip(results, first, strict=True))
    changes = [bool(here["correct"]) - bool(there["correct"]) for here, there in pairs]
    wins, losses = changes.count(1), changes.count(-1)
    measured = [(here, there) for here, there in pairs if here["usage"] and there["usage"]]
    costs: dict[str, Difference] = {}
    for name in spent_on(list(chain.from_iterable(measured))):
        costs[name] = _difference([cost_of(here, name) - cost_of(there, name) for here, there in measured])
    return {
        "wins": wins,
        "losses": losses,
        "p_value": mcnemar(wins, losses),
        "accuracy": _difference(changes),
        "cost": costs,
    }


def _difference(values: Sequence[float]) -> Difference:
    from numpy import mean
    from scipy.stats import bootstrap

    if len(values) < 2:
        return {"mean": fmean(values), "interval": None}
    # A fixed seed, so that the same results have the same interval; batches, so that not all resamples are in memory.
    resampled = bootstrap((values,), mean, confidence_level=CONFIDENCE, method="percentile", rng=0, batch=100)
    interval = float(resampled.confidence_interval.low), float(resampled.confidence_interval.high)
    return {"mean": fmean(values), "interval": interval}
