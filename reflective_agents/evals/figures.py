"""Tables and curves as files to publish: CSV, SVG and PNG, each with a caption that says where it comes from."""

import csv
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from reflective_agents.evals.page import Point
from reflective_agents.state.errors import Misuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {
    "model_calls": "model calls a task",
    "total_tokens": "tokens a task",
    "cost": "dollars a task",
    "seconds": "seconds a task",
}
LONGEST = 48
"""Characters of a line within a cell."""


class Publication(NamedTuple):
    """What is written.

    Attributes:
        columns: The heads of the table.
        rows: Its rows.
        runs: The names of the runs, one for each curve of a picture.
        curves: For each amount (calls, tokens, seconds, dollars) the points of each run.
        caption: Where it comes from: command, date, and what the intervals are.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    runs: Sequence[str]
    curves: Mapping[str, Sequence[Sequence[Point]]]
    caption: str


def write_figures(folder: Path, publication: Publication) -> list[Path]:
    """Write a table, and a curve for each amount, as CSV, SVG and PNG.

    Args:
        folder: Where to; it is made if it is not there. Files of these names are replaced.
        publication: What is written.

    Returns:
        The files.

    Raises:
        Misuse: if they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [_write_table(folder / "table", publication)]
        files += [_write_curve(folder / f"curve-{amount}", publication, amount) for amount in publication.curves]
    except OSError as error:
        raise Misuse(f"--figures: {folder} cannot be written ({error.strerror or error})") from error
    return list(chain.from_iterable(files))


def _write_table(file: Path, publication: Publication) -> list[Path]:
    columns, rows = publication.columns, publication.rows
    _write_csv(file.with_suffix(".csv"), publication.caption, [columns, *rows])
    cells = list(map(_wrapped, (columns, *rows)))
    widths = list(map(_width, zip(*cells, strict=True)))
    heights = list(map(_height, cells))
    tall = sum(heights) + len(heights) * 0.5
    width = max(sum(widths) * 0.085, 6)
    figure, axes = _empty(width, tall * 0.18, publication.caption, margin=(0.15, 0.1))
    axes.axis("off")
    table = axes.table(cells, loc="center", cellLoc="left", colWidths=[width / sum(widths) for width in widths])
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for (row, _), cell in table.get_celld().items():
        cell.set_height((heights[row] + 0.5) / tall)
        cell.set_edgecolor("#cccccc")
        cell.get_text().set_parse_math(False)  # two dollar signs are no formula
        cell.visible_edges = "B"
        if row == 0:
            cell.set_text_props(weight="bold")
    return [file.with_suffix(".csv"), *_save(figure, file, publication.caption)]


def _wrapped(row: Sequence[str]) -> list[str]:
    return ["\n".join(wrap(cell, LONGEST)) for cell in row]


def _width(column: Sequence[str]) -> int:
    """Return the width of a column in characters, with a margin."""
    lines = "\n".join(column).split("\n")
    return max(map(len, lines)) + 2


def _height(row: Sequence[str]) -> int:
    """Return the height of a row in lines."""
    return 1 + max(cell.count("\n") for cell in row)


def _write_curve(file: Path, publication: Publication, amount: str) -> list[Path]:
    curves = list(zip(publication.runs, publication.curves[amount], strict=True))
    rows = [["run", amount, "share_correct", "low", "high"]]
    for name, points in curves:
        for point in points:
            rows.append([name, *(f"{value:.10g}" for value in point)])
    spent = [point[0] for point in chain.from_iterable(publication.curves[amount])]
    most = max(spent, default=1)
    csv_file = file.with_suffix(file.suffix + ".csv")
    _write_csv(csv_file, publication.caption, rows)
    figure, axes = _empty(7, 4, publication.caption, margin=(0.7, 0.55))
    for name, points in curves:
        spent, share, low, high = _steps(points, most)
        [drawn] = axes.step(spent, share, where="post", label=name)
        axes.fill_between(spent[1:], low[1:], high[1:], step="post", alpha=0.15, color=drawn.get_color())
    axes.set_xlabel(AXES.get(amount, amount))
    axes.set_ylabel("share of tasks correct")
    axes.set_ylim(0, 1)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    for text in axes.legend(loc="best", fontsize=8).get_texts():
        text.set_parse_math(False)
    return [csv_file, *_save(figure, file, publication.caption)]


def _steps(points: Sequence[Point], most: float) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return amounts, shares, lower and upper bounds of a line that begins at 0.

    A step holds up to the next one, and the last to the end. A run that solves nothing stays at 0.
    """
    drawn: list[Point] = [(0.0, 0.0, 0.0, 0.0), *points]
    _, *last = drawn[-1]
    spent, share, low, high = zip(*drawn, (most, *last), strict=True)
    return list(spent), list(share), list(low), list(high)


def _empty(width: float, height: float, caption: str, margin: tuple[float, float]) -> "tuple[Figure, Axes]":
    """Return an empty picture with its caption below; all sizes in inches, the margin that at the left and below."""
    from matplotlib.figure import Figure  # an extra

    lines = wrap(caption, int(width * 14))
    caption_height = 0.15 * len(lines) + 0.1
    left, low = margin
    total = height + low + caption_height + 0.15
    figure = Figure((width, total))
    figure.text(0.15 / width, 0.08 / total, "\n".join(lines), fontsize=7.5, va="bottom", ha="left", parse_math=False)
    box = (left / width, (caption_height + low) / total, 1 - (left + 0.15) / width, height / total)
    return figure, figure.add_axes(box)


def _save(figure: "Figure", file: Path, caption: str) -> list[Path]:
    import matplotlib as mpl

    written = []
    # The same figures give the same bytes; and text stays text, which can be searched and edited.
    with mpl.rc_context({"svg.hashsalt": "reflective-agents", "svg.fonttype": "none"}):
        for kind, metadata in (("svg", {"Date": None, "Description": caption}), ("png", {"Description": caption})):
            written.append(file.with_name(f"{file.name}.{kind}"))
            figure.savefig(written[-1], format=kind, dpi=160, metadata=metadata)
    return written


def _write_csv(file: Path, caption: str, rows: Sequence[Sequence[str]]) -> None:
    """Write rows; the caption is a first line that begins with #."""
    with file.open("w", encoding="utf-8", newline="") as out:
        out.write(f"# {' '.join(caption.split())}\n")
        csv.writer(out).writerows(rows)
