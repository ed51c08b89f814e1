"""A question and long settings may come from stdin or a file."""

import io
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("given", "asked"), [("-", "From stdin?\n"), ("@question.txt", "From a file?"), ("@@me", "@me")]
)
def test_question(reflect: Any, given: str, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("From stdin?\n"))
    Path("question.txt").write_text("From a file?", "utf-8")
    assert reflect("run", "chain_of_thought", given, "--thread", "t").code == 0
    [row] = reflect("threads").out.splitlines()[1:]
    assert row.split("\t")[-1] == asked.strip()


def test_setting(reflect: Any) -> None:
    Path("roles.json").write_text('[{"name": "ada", "instructions": "Look it up."}]', "utf-8")
    told = reflect("run", "team", "What does UCT balance?", "--roles", "@roles.json", "--max-rounds", "1")
    assert told.code == 0
    assert "ada" in told.err


def test_no_text_in_the_file(reflect: Any) -> None:
    Path("picture").write_bytes(b"\xff\xfe\x00")
    told = reflect("run", "lats", "@picture")
    assert (told.code, told.err.count("\n")) == (2, 1)
