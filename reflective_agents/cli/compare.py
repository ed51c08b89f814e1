"""`reflect compare`: runs of `reflect eval` side by side."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from reflective_agents.cli.checks import need_for_figures, need_for_frames, need_for_statistics
from reflective_agents.cli.eval import command_line, export, publish
from reflective_agents.cli.exports import Export, check_folders, check_targets, write, write_each
from reflective_agents.cli.output import print_table, say
from reflective_agents.cli.run_folders import folders_of
from reflective_agents.evals.compare import Column, Comparison, Difference, Run, compare
from reflective_agents.evals.figures import Publication
from reflective_agents.evals.report import RunResults, curves, page_of_runs
from reflective_agents.evals.results import read_run
from reflective_agents.state.errors import Misuse

_PAIRED = ("only this", "only first", "p (McNemar)", "accuracy - first")
_SPENT = {"model_calls": "calls", "total_tokens": "tokens", "seconds": "seconds", "cost": "dollars"}
INTERVALS = (
    "95 % intervals in brackets: Wilson's for shares, bootstrap over the tasks for differences, which are paired."
)


def compare_runs(
    names: Sequence[str],
    as_json: bool,
    html: Path | None = None,
    frame: Path | None = None,
    figures: Path | None = None,
    force: bool = False,
) -> Comparison:
    """Write a comparison of runs, and return it. What can be written is, though something else cannot.

    Args:
        names: The folders of the runs, or names in the data folder; the beginning of a name is for all that begin so.
        as_json: Whether it is written as JSON.
        html: The file of a page, if one is written.
        frame: The file of a data frame, if one is written.
        figures: The folder of tables and curves to publish, if they are written.
        force: Whether a page or a data frame that is there already may be replaced.

    Raises:
        Misuse: if they cannot be compared, or something cannot be written.
    """
    check_targets({"--html": html, "--export": frame}, force)
    check_folders({"--figures": figures})
    need_for_statistics()
    if frame:
        need_for_frames()
    if figures:
        need_for_figures()
    folders = list(dict.fromkeys(chain.from_iterable(map(folders_of, names))))
    if len(folders) == 1 < len(names):
        raise Misuse(f"{' and '.join(names)} name the same run: name two different ones")
    runs: list[Run] = []
    shown: list[RunResults] = []
    for name, folder in zip(short_names(folders), folders, strict=True):
        about, results = read_run(folder)
        runs.append((name, about, results))
        shown.append(RunResults(name, results.values(), folder))
    comparison = compare(runs)
    if as_json:
        print(json.dumps(comparison))
    else:
        print_table(*_table(comparison), turn=True)
        say(_words(comparison))
    writers: list[Callable[[], None]] = []
    if html:
        writers.append(lambda: write([Export("--html", str(html), _page(comparison, shown))], force))
    if frame:
        writers.append(lambda: export(frame, folders))
    if figures:
        command = command_line("reflect", "compare", *names, **{"--figures": figures})
        writers.append(lambda: publish(figures, _publication(comparison, shown, command)))
    write_each(writers)
    return comparison


def short_names(folders: Sequence[Path]) -> list[str]:
    """Return what to call folders: the last part of each, with as many of those before it as tell them apart."""
    paths = [folder.absolute() for folder in folders]
    longest = max((len(path.parts) for path in paths), default=1)
    for length in range(1, longest + 1):
        names = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def _page(comparison: Comparison, runs: Sequence[RunResults]) -> str:
    columns, rows = _table(comparison)
    _, *turned = zip(columns, *rows, strict=True)
    figures = list(map(list, turned))
    title = " against ".join(run.name for run in runs)
    return page_of_runs(title, _words(comparison), figures, [], runs)


def _words(comparison: Comparison) -> str:
    counted = f"{comparison['shared']:,} tasks that all runs have measured"
    return f"over the {counted}; {comparison['not_shared']:,} others are left out. {INTERVALS}"


def _publication(comparison: Comparison, runs: Sequence[RunResults], command: str) -> Publication:
    """Return the table, turned as on the page, and the curves over each run's own tasks."""
    columns, rows = _table(comparison)
    heads, *turned = zip(columns, *rows, strict=True)
    words = _words(comparison)
    sentence = f"{words[0].upper()}{words[1:]} Curves are of all tasks that a run has measured."
    caption = f"{command} ({datetime.now(UTC):%Y-%m-%d}). {sentence}"
    drawn = curves([run.results for run in runs])
    return Publication(heads, turned, [run.name for run in runs], drawn, caption)


def _table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Build the columns and the rows of the table: one row per run."""
    differing = list(comparison["runs"][0]["settings"])
    costs = list(dict.fromkeys(chain.from_iterable(column["cost"] for column in comparison["runs"])))
    paired = [*_PAIRED, *(f"{_SPENT[name]} - first" for name in costs)]
    columns = ["run", "strategy", *differing, "correct", "accuracy", *costs, *paired]
    return columns, [_row(column, costs) for column in comparison["runs"]]


def _row(column: Column, names: Sequence[str]) -> list[str]:
    low, high = column["interval"]
    settings = ["-" if value is None else str(value) for value in column["settings"].values()]
    accuracy = f"{column['accuracy']:.1%} [{low:.1%}, {high:.1%}]"
    costs: list[str] = []
    for name in names:
        spent = column["cost"].get(name)
        costs.append("-" if spent is None else format(spent, f",.{_digits(name)}f"))
    paired = _paired(column, names)
    return [column["run"], column["strategy"], *settings, str(column["correct"]), accuracy, *costs, *paired]


def _digits(name: str) -> int:
    """Return how many digits of an amount are shown: more of dollars."""
    return 4 if name == "cost" else 1


def _paired(column: Column, names: Sequence[str]) -> list[str]:
    versus = column["versus_first"]
    if versus is None:
        return ["-"] * (len(_PAIRED) + len(names))
    accuracy = _difference(versus["accuracy"], "+z.1%")
    cells = [str(versus["wins"]), str(versus["losses"]), f"{versus['p_value']:.4f}", accuracy]
    for name in names:
        difference = versus["cost"].get(name)
        cells.append("-" if difference is None else _difference(difference, f"+z,.{_digits(name)}f"))
    return cells


def _difference(difference: Difference, form: str) -> str:
    interval = difference["interval"]
    bounds = "" if interval is None else f" [{format(interval[0], form)}, {format(interval[1], form)}]"
    return f"{format(difference['mean'], form)}{bounds}"
