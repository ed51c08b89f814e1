"""A question and long settings may come from stdin or a file."""

import io
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("given", "question"), [("-", "From stdin?\n"), ("@question.txt", "From a file?"), ("@@me", "@me")]
)
def test_question(reflect: Any, given: str, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("From stdin?\n"))
    Path("question.txt").write_text("From a file?", "utf-8")
    assert reflect("run", "chain_of_thought", given, "--thread", "t").code == 0
    [row] = reflect("threads").out.splitlines()[1:]
    assert row.split("\t")[-1] == question.strip()


def test_setting(reflect: Any) -> None:
    Path("roles.json").write_text('[{"name": "ada", "instructions": "Look it up."}]', "utf-8")
    ended = reflect("run", "team", "What does UCT balance?", "--roles", "@roles.json", "--max-rounds", "1")
    assert ended.code == 0
    assert "ada" in ended.err


def test_no_text_in_the_file(reflect: Any) -> None:
    Path("picture").write_bytes(b"\xff\xfe\x00")
    ended = reflect("run", "lats", "@picture")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
