"""The results of runs as one page of HTML that needs nothing else: no network, no server, no other file."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from reflective_agents.evals.page import Cell, Point, ResultsPicture, TaskRow, results_page
from reflective_agents.evals.results import Result
from reflective_agents.evals.summary import Cost, Spread, Summary, cost_of, spent_on, wilson
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
    by_task = list(map(_by_task, runs))
    ids = dict.fromkeys(chain.from_iterable(by_task))
    tasks: list[TaskRow] = []
    for task in ids:
        tasks.append(_listed([results.get(task) for results in by_task]))
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


def _by_task(run: RunResults) -> dict[str, Result]:
    return {result["id"]: result for result in run.results}


def _listed(results: Sequence[Result | None]) -> TaskRow:
    """Return the row of a task from its result in each run, of which one has it at least."""
    first = next(filter(None, results))
    cells = [_cell(result) if result else None for result in results]
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
    for task in sorted(tasks, key=_is_right_everywhere):
        for cell, results, run in zip(task["cells"], by_task, runs, strict=True):
            if not cell or not run.folder:
                continue
            location = results[task["id"]].get("transcript")
            transcript = read_transcript(run.folder, location, task["id"]) if location else None
            if transcript:
                yield cell, transcript


def _is_right_everywhere(task: TaskRow) -> bool:
    return all(cell and cell["correct"] for cell in task["cells"])


def curves(runs: Sequence[Collection[Result]]) -> dict[str, list[list[Point]]]:
    """Return how many tasks each run solves for so much of what it spends: calls, tokens, seconds, dollars.

    A task counts from what it took on. Tasks that crashed, or were not solved, never count.
    """
    measured = list(map(_measured, runs))
    if not all(measured):
        return {}
    drawn: dict[str, list[list[Point]]] = {}
    for name in spent_on([result for result in chain.from_iterable(measured) if result["usage"]]):
        of_each = [_curve(name, results) for results in measured]
        # Where all tasks took the same there is a step, and no curve.
        if max(map(len, of_each)) > 1:
            drawn[name] = of_each
    return drawn


def _measured(results: Collection[Result]) -> list[Result]:
    return [result for result in results if result["correct"] is not None]


def _curve(name: Cost, measured: Sequence[Result]) -> list[Point]:
    correct = [result for result in measured if result["correct"] and result["usage"]]
    solved = sorted(cost_of(result, name) for result in correct)
    # Of tasks that have cost the same only the last counts: a step of the curve.
    last = {spent: count for count, spent in enumerate(solved, 1)}
    amounts = sorted(last)
    if len(amounts) > POINTS:
        end = len(amounts) - 1
        amounts = [amounts[end * point // (POINTS - 1)] for point in range(POINTS)]
    return [(spent, last[spent] / len(measured), *wilson(last[spent], len(measured))) for spent in amounts]


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Return the summary in words: what, and how much."""
    rows = [
        ("strategy", summary["strategy"]),
        ("data set", f"{summary['dataset']} ({summary['environment']})"),
        ("tasks", f"{summary['finished']:,} of {summary['tasks']:,}"),
        ("accuracy", _accuracy(summary)),
    ]
    if summary["correct_if"]:
        rows.append(("correct if", summary["correct_if"]))
    rows += [("note", note) for note in summary["notes"]]
    rows += _graded(summary)
    rows += [(f"mean {name}", f"{value:.1%}") for name, value in summary["scores"].items()]
    rows += [(f"correct after trial {number}", f"{share:.1%}") for number, share in enumerate(summary["trials"], 1)]
    rows += [_spread(name, spread) for name, spread in summary["cost"].items()]
    if summary["cached_calls"]:
        rows.append(("calls from the cache", f"{summary['cached_calls']:,}"))
    if summary["unpriced_calls"]:
        rows.append(("calls of unknown price", f"{summary['unpriced_calls']:,}"))
    rows += [(f"ended as {status}", f"{count:,}") for status, count in summary["outcomes"].items()]
    rows += [(f"crashed with {kind}", f"{count:,}") for kind, count in summary["errors"].items()]
    return rows


def _spread(name: str, spread: Spread) -> tuple[str, str]:
    """Return what tasks took of something, in words."""
    if name == "cost":
        title, digits, digits_of_total = "dollars per task", 4, 2
    else:
        title, digits, digits_of_total = f"{name.replace('_', ' ')} per task", 1, 0
    mean, middle = f"{spread['mean']:,.{digits}f}", f"{spread['median']:,.{digits}f}"
    return title, f"mean {mean}, median {middle}, {spread['total']:,.{digits_of_total}f} in total"


def _graded(summary: Summary) -> list[tuple[str, str]]:
    """Return what grading took, and how far it agrees with the exact match."""
    rows: list[tuple[str, str]] = []
    if spent := summary["grading"]:
        dollars = f", {spent['cost']:,.4f} dollars" if spent["cost"] else ""
        calls = f"{spent['model_calls']:,.0f} model calls, {spent['total_tokens']:,.0f} tokens"
        rows.append(("grading, not in the cost below", f"{calls}{dollars} in total"))
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
