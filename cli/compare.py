"""`reflect compare`: runs of `reflect eval` side by side."""

import json
from collections.abc import Sequence
from pathlib import Path

from cli.eval import runs_folder
from cli.output import print_table, say
from evals.compare import COSTS, Column, Comparison, Difference, Run, compare
from evals.extras import STATISTICS, need
from evals.results import read_run

_PAIRED = ("only this", "only first", "p (McNemar)", "accuracy - first", "calls - first")


def compare_runs(names: Sequence[str], as_json: bool) -> int:
    """Write a comparison of runs, each named by its folder or by the name of one in the data folder.

    Raises:
        Misuse: if they cannot be compared.
    """
    need(*STATISTICS)
    comparison = compare([_read(name) for name in names])
    if as_json:
        print(json.dumps(comparison))
        return 0
    print_table(*_table(comparison))
    counted = f"{comparison['shared']:,} tasks that all runs have measured"
    say(f"over the {counted}; {comparison['not_shared']:,} others are left out. 95 % intervals in brackets.")
    return 0


def _read(name: str) -> Run:
    folder = Path(name)
    if not folder.exists() and (runs_folder() / name).exists():
        folder = runs_folder() / name
    return (folder.name or name, *read_run(folder))


def _table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """A row a run."""
    differing = list(comparison["runs"][0]["settings"])
    columns = ["run", "strategy", *differing, "correct", "accuracy", *COSTS, *_PAIRED]
    return columns, [_row(column) for column in comparison["runs"]]


def _row(column: Column) -> list[str]:
    low, high = column["interval"]
    settings = ["-" if value is None else str(value) for value in column["settings"].values()]
    accuracy = f"{column['accuracy']:.1%} [{low:.1%}, {high:.1%}]"
    costs = [f"{column['cost'][name]:,.1f}" if name in column["cost"] else "-" for name in COSTS]
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
    said = "" if interval is None else f" [{format(interval[0], form)}, {format(interval[1], form)}]"
    return f"{format(difference['mean'], form)}{said}"
