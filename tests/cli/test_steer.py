"""`reflect steer`: a search that is taken by the hand."""

import json
from typing import Any

import pytest

QUESTION = "Why is reflection useful in AI?"


@pytest.fixture
def thread(reflect: Any) -> str:
    """Return the thread of a search that has ended."""
    assert reflect("run", "lats", QUESTION, "--thread", "t", "--max-expansions", "2", "--min-score", "1").code == 0
    return "t"


def log(reflect: Any) -> list[str]:
    drawn = json.loads(reflect("tree", "t", "--json", "-").out)
    return [frame["event"] for frame in drawn["frames"]]


def test_every_change_is_a_step_of_the_log(reflect: Any, thread: str) -> None:
    before = log(reflect)
    for change in (["prune", "0.1"], ["rescore", "0.0", "0.2"], ["hint", "0.0", "Be brief."], ["more", "1"]):
        ended = reflect("steer", thread, *change)
        assert ended.code == 0
        assert "lats on thread t (resumed)" in ended.err
    changes = [event for event in log(reflect)[len(before) :] if event not in ("expand", "simulate")]
    assert changes == ["prune", "rescore", "hint", "more"]


@pytest.mark.thorough
def test_a_fork_goes_on_from_an_earlier_step(reflect: Any, thread: str) -> None:
    before = log(reflect)
    assert reflect("steer", thread, "prune", "0.1").code == 0
    assert reflect("steer", thread, "fork", str(len(before) - 1)).code == 0
    assert log(reflect) == before


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["t", "prune", "0.99"], "there is no node 0.99"),
        (["t", "rescore", "0.0"], "takes other arguments"),
        (["t", "rescore", "0.0", "much"], "could not convert"),
        (["t", "rescore", "0.0", "7"], "from 0 to 1"),
        (["t", "more", "2", "n=3"], "n is not a limit"),
        (["t", "fork", "99"], "no state after step 99"),
        (["nowhere", "prune", "0.0"], "there is no thread nowhere"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_what_cannot_be_done_is_said(reflect: Any, thread: str, words: list[str], error: str) -> None:
    before = log(reflect)
    ended = reflect("steer", *words)
    assert error in ended.err
    assert (ended.code, log(reflect)) == (2, before)
