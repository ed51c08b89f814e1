"""The figures of a run and of a comparison, against values worked out by hand."""

import json

import pytest

from reflective_agents.evals.compare import Comparison, compare, mcnemar
from reflective_agents.evals.results import Result
from reflective_agents.evals.summary import curve, summarise, wilson
from reflective_agents.state.errors import Misuse
from tests.evals.fakes import attempts, make_about, make_result


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    # (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n) with z = 1.959964
    [(8, 10, 0.490162, 0.943318), (0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0), (1, 2, 0.094531, 0.905469)],
)
def test_wilson_interval(correct: int, n: int, low: float, high: float) -> None:
    assert wilson(correct, n) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(("wins", "losses", "p"), [(0, 0, 1), (1, 6, 0.125), (6, 1, 0.125), (5, 0, 0.0625), (3, 3, 1)])
def test_exact_mcnemar(wins: int, losses: int, p: float) -> None:
    assert mcnemar(wins, losses) == pytest.approx(p)


def test_summary_of_a_run() -> None:
    crash = make_result("c", False, answer=None, usage=None, outcome=None, scores={}, error="OSError: no disk: none")
    results = [make_result("a", calls=1), make_result("b", False, calls=4), crash, make_result("d", None, calls=1)]
    summary = summarise(make_about(), results)
    assert (summary["tasks"], summary["finished"], summary["measured"], summary["correct"]) == (4, 4, 3, 1)
    assert summary["accuracy"] == pytest.approx(1 / 3)
    assert summary["interval"] == wilson(1, 3)
    assert summary["scores"] == {"em": pytest.approx(1 / 3)}
    assert (summary["outcomes"], summary["errors"]) == ({"solved": 3}, {"OSError": 1})
    assert summary["cost"]["model_calls"] == {"total": 6, "mean": 2, "median": 1}
    assert summary["cost"]["total_tokens"] == {"total": 60, "mean": 20, "median": 10}
    assert json.loads(json.dumps(summary))["accuracy"] == summary["accuracy"]


def test_only_an_answer_can_go_ungraded() -> None:
    crash = make_result("a", None, answer=None, usage=None, outcome=None, scores={}, error="OSError: no disk")
    assert summarise(make_about(), [crash])["notes"] == []
    ungraded = make_result("b", None, scores={}, error="ModelFailed: no grade")
    assert len(summarise(make_about(), [crash, ungraded])["notes"]) == 1


def test_summary_of_a_run_that_costs_money() -> None:
    results = [make_result("a"), make_result("b")]
    assert "cost" not in summarise(make_about(), results)["cost"]
    for result, dollars in zip(results, (0.25, 0.75), strict=True):
        assert result["usage"] is not None
        result["usage"]["cost"] = dollars
    assert summarise(make_about(), results)["cost"]["cost"] == {"total": 1.0, "mean": 0.5, "median": 0.5}


@pytest.mark.parametrize("results", [[], [make_result("a", None)]])
def test_summary_without_anything_measured(results: list[Result]) -> None:
    summary = summarise(make_about(), results)
    assert (summary["accuracy"], summary["interval"], summary["scores"], summary["trials"]) == (None, None, {}, [])


def test_curve_counts_tasks_that_have_ended_and_those_that_crashed() -> None:
    results = [
        make_result("a", trials=attempts(True)),
        make_result("b", trials=attempts(False, True)),
        make_result("c", trials=attempts(False, False, False)),
        make_result("d", False, error="OSError"),
    ]
    assert curve(results) == [0.25, 0.5, 0.5]


def compared(*runs: list[Result], **about: object) -> Comparison:
    first = make_about()
    others = make_about(strategy="other", settings={"model": "offline", "n": 7, "more": 1}, **about)
    named = [(f"run {number}", others if number else first, results) for number, results in enumerate(runs)]
    return compare([(name, what, {result["id"]: result for result in results}) for name, what, results in named])


def test_runs_side_by_side() -> None:
    first = [make_result(name, name in "abcd", calls=2) for name in "abcdefgh"]
    second = [make_result(name, name in "abefg", calls=5) for name in "abcdefghi"]
    found = compared(first, second)
    assert (found["shared"], found["not_shared"]) == (8, 1)
    here, there = found["runs"]
    assert (here["correct"], here["accuracy"], here["versus_first"]) == (4, 0.5, None)
    assert (there["correct"], there["strategy"], there["settings"]) == (5, "other", {"n": 7})
    assert (there["accuracy"], there["interval"]) == (0.625, wilson(5, 8))
    versus = there["versus_first"]
    assert versus is not None
    assert (versus["wins"], versus["losses"], versus["p_value"]) == (3, 2, 1)
    assert versus["accuracy"]["mean"] == 0.125
    interval = versus["accuracy"]["interval"]
    assert interval is not None
    # Of 5 tasks in 8 that differ, 3 one way: standard deviation of the mean sqrt((5/8 - 1/64) / 8) = 0.276
    assert interval == pytest.approx((0.125 - 1.96 * 0.276, 0.125 + 1.96 * 0.276), abs=0.13)
    assert versus["cost"]["model_calls"] == {"mean": 3, "interval": (3, 3)}


def test_runs_that_were_scored_in_other_ways_say_so() -> None:
    here, there = compared([make_result("a")], [make_result("a")], scorer="judge")["runs"]
    assert (here["settings"], there["settings"]) == ({"n": 5, "scorer": None}, {"n": 7, "scorer": "judge"})


def test_comparison_is_the_same_each_time() -> None:
    runs = [
        [make_result(name, name in right, calls=ord(name) % 7) for name in "abcdefgh"] for right in ("abc", "cdefg")
    ]
    assert compared(*runs) == compared(*runs)


def test_tasks_that_crashed_count_as_wrong_and_cost_nothing() -> None:
    crash = make_result("a", False, usage=None, answer=None, error="OSError")
    here, there = compared([make_result("a"), make_result("b")], [crash, make_result("b", calls=9)])["runs"]
    assert (here["accuracy"], there["accuracy"]) == (1, 0.5)
    assert there["cost"]["model_calls"] == 9
    assert there["versus_first"] is not None
    assert there["versus_first"]["cost"]["model_calls"] == {"mean": 7, "interval": None}
    only = compared([crash], [crash])["runs"][1]
    assert only["cost"] == {}


def test_nothing_to_compare() -> None:
    with pytest.raises(Misuse, match="name two runs or more"):
        compared([make_result("a")])
    with pytest.raises(Misuse, match="share no measured task"):
        compared([make_result("a")], [make_result("a", question="Another?")])
    with pytest.raises(Misuse, match="share no measured task"):
        compared([make_result("a")], [make_result("a", None)])
