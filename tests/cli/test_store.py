"""Lessons that the command keeps for later runs."""

from typing import Any

QUESTION = "Who won the chess championship of 1972?"


def test_a_later_run_begins_with_what_an_earlier_one_has_learned(reflect: Any) -> None:
    first = reflect("run", "trials", QUESTION, "--experience", "chess", "--max-trials", "2")
    assert "recalled: lessons=0" in first.err
    assert "reflection: trial=1" in first.err
    assert "recalled: lessons=1" in reflect("run", "trials", QUESTION, "--experience", "chess").err
    assert "recalled: lessons=0" in reflect("run", "trials", QUESTION, "--experience", "other").err


def test_nothing_is_kept_unless_asked(reflect: Any) -> None:
    reflect("run", "trials", QUESTION, "--max-trials", "2")
    assert "recalled: lessons=0" in reflect("run", "trials", QUESTION, "--experience", "chess").err
