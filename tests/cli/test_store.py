"""What the command keeps for later runs."""

from typing import Any

import pytest

QUESTION = "Who won the chess championship of 1972?"


@pytest.fixture(autouse=True)
def quick_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")


def test_the_offline_model_which_understands_nothing_draws_nothing(reflect: Any) -> None:
    run = reflect("run", "reflection", QUESTION, "--experience", "chess", "--max-rounds", "1")
    assert "kept: lessons=0" in run.err
    assert len(reflect("experience", "list", "chess").out.splitlines()) == 1


def test_nothing_is_looked_up_unless_asked(reflect: Any) -> None:
    assert "recalled" not in reflect("run", "trials", QUESTION, "--max-trials", "1").err
