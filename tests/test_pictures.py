"""The pictures of the docs show what their commands draw today."""

import asyncio
import re

import pytest

from bench.chart import CHART, SOURCE, curves, draw
from bench.picture import PICTURE, run
from bench.picture import draw as draw_terminal


def test_the_chart_shows_the_published_figures() -> None:
    lines = curves(SOURCE.read_text("utf-8"))
    assert CHART.read_text("utf-8") == draw(lines)
    assert lines["LATS"][-1] == (40_000, 52)


def test_a_page_without_the_table_or_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="no table by tokens"):
        curves("| search | 5 requests |\n|---|--:|\n| lats | 1 |\n")
    with pytest.raises(ValueError, match="no row best_of_n"):
        curves(re.sub(r"\| best_of_n, until.*\n", "", SOURCE.read_text("utf-8")))


def test_the_terminal_shows_what_make_run_prints() -> None:
    drawn = draw_terminal(*asyncio.run(run()))
    seconds = re.compile(r"\d+\.\d(?=(/|&#160;)\S*(&#160;)?s\b|&#160;s)")
    assert seconds.sub("", drawn) == seconds.sub("", PICTURE.read_text("utf-8"))
