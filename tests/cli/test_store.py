"""What the command keeps for later runs."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

QUESTION = "Who won the chess championship of 1972?"


@pytest.fixture(autouse=True)
def quick_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")


@pytest.mark.thorough
def test_a_later_run_begins_with_what_an_earlier_one_has_learned(reflect: Any) -> None:
    first = reflect("run", "reflection", QUESTION, "--experience", "chess", "--max-rounds", "1")
    assert "recalled: lessons=0" in first.err
    assert "kept: lessons=1" in first.err
    for strategy in ("trials", "react"):
        assert "recalled: lessons=1" in reflect("run", strategy, QUESTION, "--experience", "chess").err
    assert "recalled: lessons=0" in reflect("run", "trials", QUESTION, "--experience", "other").err


def test_a_run_that_goes_on_keeps_what_it_has_learned_where_it_began(
    reflect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_progress(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("reflective_agents.cli.progress.Progress.add", no_progress)
        broken = reflect("run", "reflection", QUESTION, "--experience", "chess", "--max-rounds", "1")
    assert broken.code == 130
    [way] = [line for line in broken.err.splitlines() if line.startswith("interrupted; go on with: reflect ")]
    resumed = reflect(*shlex.split(way.removeprefix("interrupted; go on with: reflect ")))
    assert "kept: lessons=1" in resumed.err
    assert len(reflect("experience", "list", "chess").out.splitlines()) == 2


def test_an_evaluation_learns_from_task_to_task(reflect: Any, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps({"question": QUESTION, "answer": "Nobody knows."}) + "\n")
    assert reflect("eval", "reflection", str(file), "--experience", "chess", "--max-rounds", "1").code == 0
    assert len(reflect("experience", "list", "chess").out.splitlines()) == 2


def test_nothing_is_looked_up_unless_asked(reflect: Any) -> None:
    assert "recalled" not in reflect("run", "trials", QUESTION, "--max-trials", "1").err
