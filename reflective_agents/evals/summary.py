"""What the results of a run come to: accuracy with its interval, the curve over trials, and the cost a task."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from statistics import fmean, median
from typing import Literal

from typing_extensions import TypedDict

from reflective_agents.evals.results import About, Result
from reflective_agents.state.json_types import JsonObject

Cost = Literal["model_calls", "total_tokens", "seconds", "cost"]
Interval = tuple[float, float]
CONFIDENCE = 0.95


class Spread(TypedDict):
    """What the tasks of a run took of something."""

    total: float
    mean: float
    median: float


class Agreement(TypedDict):
    """A model that graded and the exact match, on the tasks of which both have a figure."""

    tasks: int
    both: int
    """Tasks that both find correct."""
    only_judge: int
    only_em: int


class Summary(TypedDict):
    """The results of a run in figures; plain data."""

    strategy: str
    settings: JsonObject
    dataset: str
    environment: str
    tasks: int
    """Tasks of the data set."""
    finished: int
    """Those that have a result, errors included."""
    measured: int
    """Those whose right answer is known: what the accuracy is a share of."""
    correct: int
    accuracy: float | None
    interval: Interval | None
    """In which the accuracy lies with 95 % confidence (Wilson)."""
    scores: dict[str, float]
    """The mean of each figure over the measured tasks; a task without an answer counts as 0."""
    trials: list[float]
    """The share of tasks that are correct after each trial; empty if the strategy makes none."""
    outcomes: dict[str, int]
    errors: dict[str, int]
    """Tasks that crashed, by the kind of error."""
    cost: dict[str, Spread]
    """Model calls, tokens, seconds and dollars a task, without those of tasks that crashed and so cannot say."""
    correct_if: str
    """What counted as correct, in words that complete "an answer is correct if"; empty in runs of earlier versions."""
    grading: dict[str, float]
    """Calls, tokens and dollars that a model took to grade the answers, all together; they are not in the cost."""
    agreement: Agreement | None
    """How a model that graded and the exact match agree; None where they did not both look."""
    notes: list[str]
    """What makes the figures doubtful, and what to do."""
    cached_calls: int
    """Calls that the response cache has answered; the cost is without them."""
    unpriced_calls: int
    """Calls of which nobody knows the price; the dollars are without them."""
    versions: dict[str, str]
    started: str


def summarise(about: About, results: Collection[Result]) -> Summary:
    """Count and average the results of a run, whether it has ended or not."""
    measured = [result for result in results if result["correct"] is not None]
    correct = sum(bool(result["correct"]) for result in measured)
    outcomes = Counter(result["outcome"]["status"] for result in results if result["outcome"])
    errors = Counter(kind_of(result["error"]) for result in results if result["error"])
    cached_calls = unpriced_calls = 0
    for result in results:
        cached_calls += result.get("cached_calls", 0)
        if result["usage"]:
            unpriced_calls += result["usage"].get("unpriced_calls", 0)
    return {
        "strategy": about["strategy"],
        "settings": about["settings"],
        "dataset": about["dataset"],
        "environment": about["environment"],
        "tasks": about["tasks"],
        "finished": len(results),
        "measured": len(measured),
        "correct": correct,
        "accuracy": correct / len(measured) if measured else None,
        "interval": wilson(correct, len(measured)) if measured else None,
        "scores": _scores(measured),
        "trials": curve(measured),
        "outcomes": dict(outcomes.most_common()),
        "errors": dict(errors.most_common()),
        "cost": _cost(results),
        "correct_if": about.get("correct_if", ""),
        "grading": _grading(results),
        "agreement": _agreement(measured),
        "notes": [*_notes(measured), *_ungraded(results)],
        "cached_calls": cached_calls,
        "unpriced_calls": unpriced_calls,
        "versions": about["versions"],
        "started": about["started"],
    }


def kind_of(error: str) -> str:
    """Return the name of the exception that an error begins with."""
    return error.partition(":")[0]


def wilson(correct: int, n: int) -> Interval:
    """Return the Wilson interval of a share, with 95 % confidence. `n` is above 0."""
    from scipy.stats import binomtest

    interval = binomtest(correct, n).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def curve(measured: Sequence[Result]) -> list[float]:
    """Return the share of tasks that are correct after each trial (Reflexion, arXiv 2303.11366, section 4).

    What counts is the best trial so far. A task that has ended stays as it is.
    """
    correct: Counter[int] = Counter()
    longest = max((len(result["trials"]) for result in measured), default=0)
    for result in measured:
        trials = result["trials"]
        if trials:
            ended = [trials[-1]] * (longest - len(trials))
            for number, trial in enumerate([*trials, *ended]):
                correct[number] += trial["best_correct"]
    return [correct[number] / len(measured) for number in range(longest)]


GRADED: tuple[Literal["model_calls", "total_tokens", "cost"], ...] = ("model_calls", "total_tokens", "cost")


def _grading(results: Iterable[Result]) -> dict[str, float]:
    total: dict[str, float] = {}
    for result in results:
        if "grading" in result:
            for name in GRADED:
                total[name] = total.get(name, 0.0) + result["grading"][name]
    return total


def _agreement(measured: Iterable[Result]) -> Agreement | None:
    counts: Counter[tuple[bool, bool]] = Counter()
    for result in measured:
        scores = result["scores"]
        if "judge" in scores and "em" in scores:
            counts[scores["judge"] == 1, scores["em"] == 1] += 1
    if not counts:
        return None
    return {
        "tasks": counts.total(),
        "both": counts[True, True],
        "only_judge": counts[True, False],
        "only_em": counts[False, True],
    }


def _notes(measured: Sequence[Result]) -> list[str]:
    scores = _scores(measured)
    if scores.get("em", 1) or not scores.get("f1") or "judge" in scores:
        return []
    return [
        f"em is 0 while f1 is {scores['f1']:.2f}: the answers share words with the right ones and equal none. Look at "
        "some, and score them by another --scorer, anew with --rescore"
    ]


def _ungraded(results: Iterable[Result]) -> list[str]:
    count = sum(map(_is_ungraded, results))
    return [f"{count:,} answers could not be graded; score them anew with --rescore"] if count else []


def _is_ungraded(result: Result) -> bool:
    # Without an answer it was the task that crashed.
    return result["answer"] is not None and result["correct"] is None and result["error"] is not None


def _scores(measured: Sequence[Result]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for name in dict.fromkeys(chain.from_iterable(result["scores"] for result in measured)):
        scores[name] = fmean(result["scores"].get(name, 0.0) for result in measured)
    return scores


def _cost(results: Iterable[Result]) -> dict[str, Spread]:
    measured = [result for result in results if result["usage"]]
    spreads: dict[str, Spread] = {}
    for name in spent_on(measured):
        costs = [cost_of(result, name) for result in measured]
        spreads[name] = Spread(total=sum(costs), mean=fmean(costs), median=median(costs))
    return spreads


def spent_on(measured: Sequence[Result]) -> list[Cost]:
    """Return what tasks took that `cost_of` knows; money only where some was spent."""
    money: list[Cost] = ["cost"] if any(cost_of(result, "cost") for result in measured) else []
    return ["model_calls", "total_tokens", "seconds", *money] if measured else []


def cost_of(result: Result, name: Cost) -> float:
    """Return what a task took: "model_calls", "total_tokens", "seconds", or "cost" in dollars. Its usage must be known.

    Results of earlier versions name no cost.
    """
    if name == "seconds":
        return result["seconds"]
    usage = result["usage"]
    assert usage is not None
    return float(usage.get(name, 0.0) if name == "cost" else usage[name])
