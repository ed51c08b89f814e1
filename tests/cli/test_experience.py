"""`reflect experience`: what was learned under a name, listed, shown, corrected, forgotten, shipped and merged."""

import json
from pathlib import Path
from typing import Any

import pytest

ITEM = {"title": "Openings", "applies_when": "a question on chess", "advice": "Name the year.", "evidence": "A run."}
ID = "a" * 32


@pytest.fixture(autouse=True)
def quick_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of two items."""
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(json.dumps(item) for item in ({**ITEM, "id": ID}, {**ITEM, "advice": "Name the place."})))
    return path


@pytest.fixture
def learned(reflect: Any, file: Path) -> Any:
    """Return the command, after a file was imported."""
    assert reflect("experience", "import", "chess", str(file)).err.endswith("2 items added\n")
    return reflect


def rows(listed: Any) -> list[list[str]]:
    assert listed.code == 0, listed.err
    header, *lines = [line.split("\t") for line in listed.out.splitlines()]
    assert header == ["id", "seen", "solved", "failed", "status", "title", "applies when"]
    return lines


def test_items_are_listed_and_shown_by_name_and_user(learned: Any) -> None:
    assert [ID, "1", "0", "0", "active", "Openings", "a question on chess"] in rows(
        learned("experience", "list", "chess")
    )
    assert len(rows(learned("experience", "list", "chess", "--limit", "1"))) == 1
    assert rows(learned("experience", "list", "chess", "--user", "ada")) == []
    empty = learned("experience", "list", "draughts")
    assert (rows(empty), "nothing is kept under draughts" in empty.err) == ([], True)
    shown = learned("experience", "show", "chess", ID).out
    assert "advice: Name the year." in shown
    assert "evidence: A run." in shown


def test_a_correction_is_shown_with_what_was_before(learned: Any) -> None:
    assert learned("experience", "edit", "chess", ID, "--advice", "Name the month.").code == 0
    exported = next(
        item
        for line in learned("experience", "export", "chess").out.splitlines()
        if (item := json.loads(line))["id"] == ID
    )
    assert exported["advice"] == "Name the month."
    assert exported["history"][0]["before"] == {"advice": "Name the year."}
    assert "Name the month." in learned("experience", "show", "chess", ID).out


def test_what_is_forgotten_is_gone_and_of_one_user_alone(learned: Any, file: Path) -> None:
    learned("experience", "import", "chess", str(file), "--user", "ada")
    assert learned("experience", "forget", "chess", ID).code == 0
    assert ID not in [row[0] for row in rows(learned("experience", "list", "chess"))]
    assert learned("experience", "forget", "chess", "--all").code == 0
    assert rows(learned("experience", "list", "chess")) == []
    assert len(rows(learned("experience", "list", "chess", "--user", "ada"))) == 2


def test_what_is_exported_is_imported_and_merged_elsewhere(learned: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert learned("experience", "export", "chess", str(out)).code == 0
    assert learned("experience", "import", "draughts", str(out)).err.endswith("2 items added\n")
    assert learned("experience", "merge", "draughts", str(out)).err.endswith("0 items added, 0 counted\n")
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({**ITEM, "id": "b" * 32}) + "\n" + json.dumps({**ITEM, "advice": "Be brief."}))
    assert learned("experience", "merge", "draughts", str(other)).err.endswith("1 items added, 1 counted\n")
    assert learned("experience", "export", "chess", str(out)).code == 2


def test_an_item_cannot_command_the_terminal(reflect: Any, tmp_path: Path) -> None:
    path = tmp_path / "planted.jsonl"
    path.write_text(
        json.dumps({**ITEM, "title": "\x1b]0;owned\x07Red", "advice": "\x1b[31mRed \u202e news.", "id": ID})
    )
    assert reflect("experience", "import", "chess", str(path)).code == 0
    listed, shown = reflect("experience", "list", "chess"), reflect("experience", "show", "chess", ID)
    assert "Red" in listed.out
    assert not {"\x1b", "\u202e", "\x07"} & set(listed.out + shown.out)


def test_a_run_looks_at_what_was_imported(learned: Any) -> None:
    run = learned("run", "react", "Who won at chess in 1972?", "--experience", "chess", "--max-actions", "1")
    assert "looked_at=2" in run.err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["show", "chess", "x"], "there is no item x here"),
        (["forget", "chess"], "name the item"),
        (["forget", "chess", "x", "--all"], "name the item"),
        (["forget", "chess", "x"], "there is no item x here"),
        (["edit", "chess", "x"], "give the new text"),
        (["edit", "chess", "x", "--advice", "  "], "give the new text"),
        (["edit", "chess", "x", "--advice", "No."], "there is no item x here"),
        (["import", "chess", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        (["list", "chess", "--embeddings", "nobody:x"], "nobody:x"),
        (["list", "chess", "--limit", "0"], "--limit"),
    ],
)
def test_misuse_is_one_line_that_says_what_to_do(reflect: Any, words: list[str], advice: str) -> None:
    ended = reflect("experience", *words)
    assert (ended.code, ended.out) == (2, "")
    assert advice in ended.err
    assert ended.err.count("\n") == 1
