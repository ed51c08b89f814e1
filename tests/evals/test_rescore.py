"""Answers that are measured anew."""

import json
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.environments.base import Task
from reflective_agents.evals.rescore import rescore
from reflective_agents.evals.results import About, Result, empty_result, read_run
from reflective_agents.evals.store import Store
from reflective_agents.state.errors import Misuse, ScorerFailed


def about(environment: str) -> About:
    return {
        "strategy": "reflection",
        "settings": {},
        "dataset": "old",
        "environment": environment,
        "fingerprint": "0" * 16,
        "tasks": 3,
        "versions": {},
        "started": "2026-01-01T00:00:00+00:00",
    }


def old_run(folder: Path, environment: str, *results: dict[str, Any]) -> None:
    """Write a run in which every answer was called correct."""
    store = Store(folder, about(environment))
    for number, given in enumerate(results):
        task = Task(id=str(number), question="How much?", gold=given["gold"])
        result: Result = {**empty_result(task), "answer": given["answer"], "correct": True, "scores": {"em": 1.0}}
        result["trials"] = given.get("trials", [])
        store.append(result)
    store.close()


async def test_old_scores_are_replaced_where_they_are_others_now(tmp_path: Path) -> None:
    pairs = [("1.5", "15"), ("-3", "3"), ("1,000", "1000"), ("Paris", "the paris.")]
    old_run(tmp_path, "plain", *({"gold": gold, "answer": answer} for gold, answer in pairs))
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    done = await rescore(tmp_path)
    assert (done.before["correct"], done.after["correct"]) == (4, 2)
    _, now = read_run(tmp_path)
    assert [now[str(number)]["correct"] for number in range(4)] == [False, False, True, True]
    assert (tmp_path / "results.jsonl").read_text().splitlines()[:4] == lines, "the old scores stay on record"
    assert (await rescore(tmp_path)).changed == []


async def test_trials_are_measured_too(tmp_path: Path) -> None:
    wrong = {"solved": False, "correct": False, "best_correct": False}
    trials = [{**wrong, "answer": "2"}, {**wrong, "answer": "15", "correct": True, "best_correct": True}]
    old_run(tmp_path, "arithmetic", {"gold": "1.5", "answer": "15", "trials": trials})
    await rescore(tmp_path)
    _, now = read_run(tmp_path)
    assert [(trial["correct"], trial["best_correct"]) for trial in now["0"]["trials"]] == [(False, False)] * 2


async def test_what_needs_the_data_set_says_so(tmp_path: Path) -> None:
    old_run(tmp_path, "blocksworld", {"gold": "", "answer": "pick up the red block"})
    with pytest.raises(Misuse, match="--dataset"):
        await rescore(tmp_path)
    with pytest.raises(Misuse, match="does not hold task 0"):
        await rescore(tmp_path, {})


async def test_tasks_that_ask_something_else_are_refused(tmp_path: Path) -> None:
    """Tasks without a name are numbered: in another order, a number is another question."""
    old_run(tmp_path, "plain", {"gold": "1", "answer": "1"}, {"gold": "2", "answer": "2"})
    swapped = {"0": Task(id="0", question="How much?", gold="1"), "1": Task(id="1", question="How many?", gold="3")}
    with pytest.raises(Misuse, match="task 1 of the data set is another question"):
        await rescore(tmp_path, swapped)
    assert [result["correct"] for result in read_run(tmp_path)[1].values()] == [True, True]


async def test_scores_of_two_scorers_are_never_mixed(tmp_path: Path) -> None:
    def fails_at_times(answer: str, task: Task) -> bool:
        return bool(1 / int(answer))

    old_run(tmp_path, "plain", *({"gold": "1", "answer": answer} for answer in "101"))
    before = read_run(tmp_path)
    with pytest.raises(ScorerFailed, match="fails_at_times raises ZeroDivisionError: division by zero"):
        await rescore(tmp_path, scorer=fails_at_times)
    assert read_run(tmp_path) == before


async def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="holds no run"):
        await rescore(tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from reflective_agents.cli.main import main

    old_run(tmp_path, "plain", {"gold": "1.5", "answer": "15"})
    assert main(["eval", "--rescore", str(tmp_path)]) == 0
    assert "correct: 1 before, 0 now" in capsys.readouterr().err
    assert main(["eval", "--rescore", str(tmp_path / "none")]) == 2
    assert "holds no run" in capsys.readouterr().err
    json.loads((tmp_path / "run.json").read_text())
