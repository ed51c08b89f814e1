"""The results of runs as one page of HTML that needs nothing else: no network, no server, no other file."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from reflective_agents.evals.page import Cell, Point, ResultsPicture, TaskRow, results_page
from reflective_agents.evals.results import Result
from reflective_agents.evals.summary import Cost, Summary, cost_of, spent_on, wilson
from reflective_agents.evals.transcripts import Transcript, read_transcript

POINTS = 60
"""Of a curve, at most."""


class RunResults(NamedTuple):
    """A run on a page: its name, its results, and its folder, where the transcripts are."""

    name: str
    results: Collection[Result]
    folder: Path | None = None


def page(summary: Summary, results: Collection[Result], folder: Path | None = None) -> str:
    """Return the page of a run. What models wrote stands in it as text, whatever it says."""
    title = f"{summary['strategy']} on {summary['dataset']}"
    settings = [*summary["settings"].items(), *summary["versions"].items()]
    shown = [(name, str(value)) for name, value in settings if value is not None]
    rows = [list(row) for row in facts(summary)]
    return page_of_runs(
        title, f"Begun {summary['started']}", rows, shown, [RunResults(summary["strategy"], results, folder)]
    )


def page_of_runs(
    title: str, words: str, rows: list[list[str]], settings: list[tuple[str, str]], runs: Sequence[RunResults]
) -> str:
    """Return the page of one run or of several.

    Args:
        title: Its title.
        words: What else there is to say.
        rows: The figures, each with one value a run.
        settings: What was set.
        runs: The runs.
    """
    by_task = [{result["id"]: result for result in run.results} for run in runs]
    ids = dict.fromkeys(task for results in by_task for task in results)
    tasks = [_listed([results.get(task) for results in by_task]) for task in ids]
    picture = ResultsPicture(
        title=title,
        facts=words,
        runs=[run.name for run in runs],
        figures=rows,
        settings=settings,
        curves=curves([run.results for run in runs]),
        tasks=tasks,
    )
    return results_page(picture, _transcripts(tasks, by_task, runs))


def _listed(results: Sequence[Result | None]) -> TaskRow:
    first = next(result for result in results if result)
    cells = [result and _cell(result) for result in results]
    return TaskRow(id=first["id"], question=first["question"], gold=first["gold"], cells=cells)


def _cell(result: Result) -> Cell:
    usage, outcome = result["usage"], result["outcome"]
    return Cell(
        answer=result["answer"],
        extracted=result.get("extracted"),
        correct=result["correct"],
        scores=result["scores"],
        status=outcome["status"] if outcome else None,
        reason=outcome["reason"] if outcome else "",
        error=result["error"],
        calls=usage["model_calls"] if usage else None,
        cached=result.get("cached_calls", 0),
        tokens=usage["total_tokens"] if usage else None,
        cost=usage.get("cost") if usage else None,
        seconds=result["seconds"],
        at=None,
    )


def _transcripts(
    tasks: Sequence[TaskRow], by_task: Sequence[Mapping[str, Result]], runs: Sequence[RunResults]
) -> Iterator[tuple[Cell, Transcript]]:
    """Yield the transcripts with their cells, those of wrong answers first."""
    for task in sorted(tasks, key=lambda task: all(cell and cell["correct"] for cell in task["cells"])):
        for cell, results, run in zip(task["cells"], by_task, runs, strict=True):
            location = results[task["id"]].get("transcript") if cell else None
            if cell and location and run.folder and (read := read_transcript(run.folder, location, task["id"])):
                yield cell, read


def curves(runs: Sequence[Collection[Result]]) -> dict[str, list[list[Point]]]:
    """Return how many tasks each run solves for so much of what it spends: calls, tokens, seconds, dollars.

    A task counts from what it took on. Tasks that crashed, or were not solved, never count.
    """
    measured = [[result for result in results if result["correct"] is not None] for results in runs]
    if not all(measured):
        return {}
    spent = spent_on([result for results in measured for result in results if result["usage"]])
    drawn = {name: [_curve(name, results) for results in measured] for name in spent}
    # Where all tasks took the same there is a step, and no curve.
    return {name: curves for name, curves in drawn.items() if any(len(points) > 1 for points in curves)}


def _curve(name: Cost, measured: Sequence[Result]) -> list[Point]:
    solved = sorted(cost_of(result, name) for result in measured if result["correct"] and result["usage"])
    # Of tasks that have cost the same only the last counts: a step of the curve.
    last = {spent: count for count, spent in enumerate(solved, 1)}
    amounts = sorted(last)
    drawn_at = (
        amounts
        if len(amounts) <= POINTS
        else [amounts[(len(amounts) - 1) * at // (POINTS - 1)] for at in range(POINTS)]
    )
    return [(spent, last[spent] / len(measured), *wilson(last[spent], len(measured))) for spent in drawn_at]


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Return the summary in words: what, and how much."""
    rows = [
        ("strategy", summary["strategy"]),
        ("data set", f"{summary['dataset']} ({summary['environment']})"),
        ("tasks", f"{summary['finished']:,} of {summary['tasks']:,}"),
        ("accuracy", _accuracy(summary)),
    ]
    rows += [("correct if", summary["correct_if"])] if summary["correct_if"] else []
    rows += [("note", note) for note in summary["notes"]]
    rows += _graded(summary)
    rows += [(f"mean {name}", f"{value:.1%}") for name, value in summary["scores"].items()]
    rows += [(f"correct after trial {number}", f"{share:.1%}") for number, share in enumerate(summary["trials"], 1)]
    for name, spread in summary["cost"].items():
        digits = (4, 2) if name == "cost" else (1, 0)
        mean, middle = (f"{spread[which]:,.{digits[0]}f}" for which in ("mean", "median"))
        text = f"mean {mean}, median {middle}, {spread['total']:,.{digits[1]}f} in total"
        rows.append(("dollars per task" if name == "cost" else f"{name.replace('_', ' ')} per task", text))
    rows += [("calls from the cache", f"{summary['cached_calls']:,}")] if summary["cached_calls"] else []
    rows += [("calls of unknown price", f"{summary['unpriced_calls']:,}")] if summary["unpriced_calls"] else []
    rows += [(f"ended as {status}", f"{count:,}") for status, count in summary["outcomes"].items()]
    rows += [(f"crashed with {kind}", f"{count:,}") for kind, count in summary["errors"].items()]
    return rows


def _graded(summary: Summary) -> list[tuple[str, str]]:
    """Return what grading took, and how far it agrees with the exact match."""
    rows: list[tuple[str, str]] = []
    if spent := summary["grading"]:
        dollars = f", {spent['cost']:,.4f} dollars" if spent["cost"] else ""
        calls, tokens = (f"{spent[name]:,.0f}" for name in ("model_calls", "total_tokens"))
        rows.append(("grading, not in the cost below", f"{calls} model calls, {tokens} tokens{dollars} in total"))
    if agreement := summary["agreement"]:
        apart = agreement["only_judge"] + agreement["only_em"]
        alike = agreement["tasks"] - apart
        share = f"{alike:,} of {agreement['tasks']:,} ({alike / agreement['tasks']:.1%})"
        differ = f"correct for the judge alone {agreement['only_judge']:,}, for em alone {agreement['only_em']:,}"
        rows.append(("judge agrees with em", f"{share}; {differ}"))
    return rows


def _accuracy(summary: Summary) -> str:
    if summary["accuracy"] is None or summary["interval"] is None:
        return "not measured: the scorer could compare no answer with a right one"
    low, high = summary["interval"]
    counted = f"{summary['correct']:,} of {summary['measured']:,}"
    return f"{summary['accuracy']:.1%} ({counted}; 95 % interval {low:.1%} to {high:.1%})"
