"""When sampling stops on recorded answers: the page shows it, and stopping later never elects worse."""

import re
from pathlib import Path

import pytest

from bench.game24 import sampling
from bench.game24.sampling import CRITERIA, DATA, beta, chances, choose, elected, measured, report, window
from bench.replays.records import load

PAGE = Path(__file__).parents[2] / "docs" / "sampling.md"


def test_the_beta_criterion_stops_where_the_leader_is_safe_and_a_window_where_all_agree() -> None:
    answers = ["4", "", "5", "4", "4", "4"]
    known = chances(answers)
    assert known == pytest.approx([3 / 4, 3 / 4, 1 / 2, 11 / 16, 13 / 16, 57 / 64])
    assert [k for k in range(1, 7) if beta(0.8)(answers, known, k)] == [5, 6]
    assert [k for k in range(1, 7) if window(2)(answers, known, k)] == [6]
    assert elected(answers) == "4"


def test_more_confidence_takes_more_samples_and_agrees_more_often(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "ORDERS", 2)
    tables = measured([sampling.recorded(record) for record in load(recorded, DATA)])
    drawn, agree, _ = tables["all 100"].mean(axis=(0, 1))
    assert (drawn, agree) == (100, 1)
    curve = [tables[f"Beta, {level}, 1 at once"].mean(axis=(0, 1)) for level in sampling.LEVELS]
    assert [row[0] for row in curve] == sorted(row[0] for row in curve)
    assert curve[-1][1] > 0.99 > curve[0][1]
    assert tables[choose(tables)][..., 1].mean() >= sampling.AGREEMENT


@pytest.mark.thorough
def test_the_page_shows_what_each_criterion_saves(recorded: Path) -> None:
    tables = measured([sampling.recorded(record) for record in load(recorded, DATA)])
    shown = re.findall(r"^\|.*\|$", PAGE.read_text(), re.MULTILINE)
    assert [row for row in report(tables) if row not in shown] == []
    assert len(tables) == len(CRITERIA)
