"""Draws docs/chart.svg how much is solved at which cost: `python -m bench.chart`."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.options import parser_of
from bench.pages import ROOT, tables

SOURCE = ROOT / "docs" / "search-results.md"
CHART = ROOT / "docs" / "chart.svg"
UNIT = "tokens"
GAMES = 66
SHOWN = {
    "lats, judged together": "LATS",
    "tree_of_thoughts, breadth first, judged together": "Tree of Thoughts",
    "best_of_n, until the calls are spent": "best of n",
    "chain of thought, best of k": "chain of thought, asked again",
}
"""The rows that are drawn, by their names in the table, with their names in the chart."""
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 600, 380, 44, 52, 138, 50
STYLE = """
text { font: 15px system-ui, sans-serif; fill: #222 } .title { font-weight: 600 } .axis { fill: #666; font-size: 13px }
.grid { stroke: #ddd } .line { fill: none; stroke: #8a8a8a; stroke-width: 2 } .dot { fill: #8a8a8a }
.first .line { stroke: #1f5f99; stroke-width: 3.5 } .first .dot { fill: #1f5f99 } .first text { font-weight: 600 }
@media (prefers-color-scheme: dark) { text { fill: #eee } .axis { fill: #aaa } .grid { stroke: #444 }
.first .line { stroke: #6cb2eb } .first .dot { fill: #6cb2eb } }
"""


class Point(NamedTuple):
    """A cost, and how many games were solved for no more."""

    cost: int
    solved: int


def curves(text: str) -> dict[str, list[Point]]:
    """Read the curves from the table of this unit in a page; cells that are empty are left out.

    Raises:
        ValueError: if the page has no such table, or a row is missing.
    """
    fitting = [table for table in tables(text) if f" {UNIT} |" in table.head]
    if not fitting:
        raise ValueError(f"no table by {UNIT} in the page")
    table = fitting[0]
    costs = [int(cell) for cell in re.findall(r"\d+", table.head)]
    rows: dict[str, list[str]] = {}
    for row in table.rows[2:]:
        name, *cells = row.strip("|").split("|")
        rows[name.strip()] = cells
    missing = SHOWN.keys() - rows.keys()
    if missing:
        raise ValueError(f"no row {', '.join(sorted(missing))} in the table by {UNIT}")
    return {label: _points(costs, rows[name]) for name, label in SHOWN.items()}


def _points(costs: Sequence[int], cells: Sequence[str]) -> list[Point]:
    points: list[Point] = []
    for cost, cell in zip(costs, cells, strict=True):
        if cell.strip():
            points.append(Point(cost, int(cell.split()[0])))
    return points


def draw(lines: Mapping[str, Sequence[Point]]) -> str:
    """Draw curves as an SVG, over a logarithmic axis of costs; the first stands out."""
    costs = sorted({point.cost for points in lines.values() for point in points})

    def x(cost: int) -> float:
        share = math.log(cost / costs[0]) / math.log(costs[-1] / costs[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(solved: int) -> float:
        return round(HEIGHT - BOTTOM - solved / GAMES * (HEIGHT - TOP - BOTTOM), 1)

    title = f"Games of 24 solved, of {GAMES}, by {UNIT} spent on each"
    parts = [f'<text class="title" x="8" y="24">{title}</text>']
    for solved in range(0, GAMES, 20):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(solved)}" y2="{y(solved)}"/>')
        parts.append(f'<text class="axis" x="{LEFT - 8}" y="{y(solved) + 4}" text-anchor="end">{solved}</text>')
    for cost in costs:
        parts.append(f'<text class="axis" x="{x(cost)}" y="{HEIGHT - 28}" text-anchor="middle">{cost:,}</text>')
    for number, (label, points) in enumerate(lines.items()):
        way = " ".join(f"{x(cost)},{y(solved)}" for cost, solved in points)
        parts.append(f'<g class="{"other" if number else "first"}"><polyline class="line" points="{way}"/>')
        parts += [f'<circle class="dot" cx="{x(cost)}" cy="{y(solved)}" r="4"/>' for cost, solved in points]
        end = points[-1]
        right, down = _shift(lines, label)
        parts.append(f'<text x="{x(end.cost) + right}" y="{y(end.solved) + down}">{label}</text></g>')
    parts.append(f'<text class="axis" x="8" y="{HEIGHT - 8}">recorded proposals of GPT-4; python -m bench.chart</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


def _shift(lines: Mapping[str, Sequence[Point]], label: str) -> tuple[int, int]:
    """Return where the name of a line begins, from its end, in pixels: above one that ends early, else beside it."""
    ends = {name: points[-1] for name, points in lines.items()}
    end = ends[label]
    if end.cost < max(cost for cost, _ in ends.values()):
        return -30, -10
    beside = [other for other in ends.values() if other != end and other.cost == end.cost]
    near = [other.solved for other in beside if abs(other.solved - end.solved) < 4]
    if not near:
        return 10, 5
    return 10, -3 if end.solved > near[0] else 13


def main() -> None:
    """Write the chart; in the quick form only print it."""
    options = parser_of("bench.chart", __doc__).parse_args()
    svg = draw(curves(SOURCE.read_text("utf-8")))
    if options.quick:
        print(svg)
    else:
        CHART.write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
