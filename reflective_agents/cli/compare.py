"""`reflect compare`: runs of `reflect eval` side by side."""

import json
from collections.abc import Sequence
from pathlib import Path

from reflective_agents.cli.checks import need_for_frames, need_for_statistics
from reflective_agents.cli.eval import export, runs_folder
from reflective_agents.cli.exports import Export, check_targets, write
from reflective_agents.cli.output import print_table, say
from reflective_agents.evals.compare import Column, Comparison, Difference, Run, compare
from reflective_agents.evals.report import RunResults, page_of_runs
from reflective_agents.evals.results import RUN, read_run
from reflective_agents.state.errors import Misuse

_PAIRED = ("only this", "only first", "p (McNemar)", "accuracy - first", "calls - first")


def compare_runs(
    names: Sequence[str], as_json: bool, html: Path | None = None, frame: Path | None = None
) -> Comparison:
    """Write a comparison of runs, and return it.

    Args:
        names: The folders of the runs, or names in the data folder; the beginning of a name is for all that begin so.
        as_json: Whether it is written as JSON.
        html: The file of a page, if one is written.
        frame: The file of a data frame, if one is written.

    Raises:
        Misuse: if they cannot be compared.
    """
    check_targets({"--html": html, "--export": frame}, force=True)
    need_for_statistics()
    if frame:
        need_for_frames()
    folders = list(dict.fromkeys(folder for name in names for folder in _folders(name)))
    if len(folders) == 1 < len(names):
        raise Misuse(f"{' and '.join(names)} name the same run: name two different ones")
    runs: list[Run] = [(folder.name or str(folder), *read_run(folder)) for folder in folders]
    comparison = compare(runs)
    if html:
        shown = [
            RunResults(name, results.values(), folder) for (name, _, results), folder in zip(runs, folders, strict=True)
        ]
        write([Export("--html", str(html), _page(comparison, shown))], force=True)
    if frame:
        export(frame, folders)
    if as_json:
        print(json.dumps(comparison))
        return comparison
    print_table(*_table(comparison), turn=True)
    say(_words(comparison))
    return comparison


def _folders(name: str) -> list[Path]:
    """Return the folder of that name, else those in the data folder whose names begin so."""
    if Path(name).exists():
        return [Path(name)]
    folders = sorted(folder.parent for folder in runs_folder().glob(f"*/{RUN}"))
    exact = [folder for folder in folders if folder.name == name]
    return exact or [folder for folder in folders if folder.name.startswith(name)] or [Path(name)]


def _page(comparison: Comparison, runs: Sequence[RunResults]) -> str:
    columns, rows = _table(comparison)
    figures = [[name, *values] for name, *values in list(zip(columns, *rows, strict=True))[1:]]
    title = " against ".join(run.name for run in runs)
    return page_of_runs(title, _words(comparison), figures, [], runs)


def _words(comparison: Comparison) -> str:
    counted = f"{comparison['shared']:,} tasks that all runs have measured"
    return f"over the {counted}; {comparison['not_shared']:,} others are left out. 95 % intervals in brackets."


def _table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Build the columns and the rows of the table: one row per run."""
    differing = list(comparison["runs"][0]["settings"])
    costs = list(dict.fromkeys(name for column in comparison["runs"] for name in column["cost"]))
    columns = ["run", "strategy", *differing, "correct", "accuracy", *costs, *_PAIRED]
    return columns, [_row(column, costs) for column in comparison["runs"]]


def _row(column: Column, names: Sequence[str]) -> list[str]:
    low, high = column["interval"]
    settings = ["-" if value is None else str(value) for value in column["settings"].values()]
    accuracy = f"{column['accuracy']:.1%} [{low:.1%}, {high:.1%}]"
    costs = [
        f"{column['cost'][name]:,.{4 if name == 'cost' else 1}f}" if name in column["cost"] else "-" for name in names
    ]
    return [column["run"], column["strategy"], *settings, str(column["correct"]), accuracy, *costs, *_paired(column)]


def _paired(column: Column) -> list[str]:
    versus = column["versus_first"]
    if versus is None:
        return ["-"] * len(_PAIRED)
    calls = versus["cost"].get("model_calls")
    return [
        str(versus["wins"]),
        str(versus["losses"]),
        f"{versus['p_value']:.4f}",
        _difference(versus["accuracy"], "+.1%"),
        _difference(calls, "+,.1f") if calls else "-",
    ]


def _difference(difference: Difference, form: str) -> str:
    interval = difference["interval"]
    bounds = "" if interval is None else f" [{format(interval[0], form)}, {format(interval[1], form)}]"
    return f"{format(difference['mean'], form)}{bounds}"
