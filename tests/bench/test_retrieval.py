"""What `make bench-memory` reads and counts, on data made up here; and that it runs on the recorded data."""

import gzip
import json
from pathlib import Path

import pytest

from bench import look_ups
from bench.locomo import read_locomo, read_longmemeval
from bench.retrieval import by_category, hits, least_gain, line, main

TURNS = [("Ada", "I moved to Turin."), ("Bob", "How nice!"), ("Ada", "I play the cello there."), ("Bob", "I bake.")]
ROW = {
    "id": "1",
    "speakers": ["Ada", "Bob"],
    "sessions": [
        {
            "number": 1,
            "at": "2023-05-08T13:56",
            "turns": [{"id": f"D1:{n}", "speaker": who, "text": text} for n, (who, text) in enumerate(TURNS)],
        }
    ],
    "questions": [
        {"id": "1-0", "question": "Where did Ada move?", "category": 4, "evidence": ["D1:0", "D1:2"]},
        {"id": "1-1", "question": "Who bakes?", "category": 5, "evidence": ["D1:3"]},
        {"id": "1-2", "question": "Unanswerable?", "category": 3, "evidence": []},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, row in (("locomo", ROW), ("locomo_corrections", {"id": "1-0", "evidence": ["D1:0"]})):
        with gzip.open(tmp_path / f"{name}.mine.jsonl.gz", "wt") as file:
            file.write(json.dumps(row) + "\n")
    return tmp_path


@pytest.mark.thorough
def test_turns_become_memories_with_speaker_and_time_and_evidence_is_published_and_audited(folder: Path) -> None:
    (conversation,) = read_locomo(folder / "locomo.mine.jsonl.gz", [folder / "locomo_corrections.mine.jsonl.gz"])
    first = conversation.turns[0]
    assert (first["text"], first.get("speaker"), first["created"]) == ("I moved to Turin.", "Ada", 1683554160.0)
    questions = conversation.questions
    assert [(question.category, len(question.evidence), len(question.audited)) for question in questions] == [
        ("single-hop", 2, 1),
        ("adversarial", 1, 1),
    ]
    found = [[first["id"]], []]
    assert [hit.recall[1] for hit in hits([conversation], [found], audited=False)] == [0.5, 0.0]
    audited = hits([conversation], [found], audited=True)
    assert [hit.recall[1] for hit in audited] == [1.0, 0.0]
    assert line("mine", audited) == "| mine | 100.0 | 100.0 | 100.0 | 100.0 to 100.0 | 100.0 | 100.0 | 1 |"
    assert (
        by_category({"mine": audited}, "audited")[0]
        == "| @10 by category, audited | single-hop (1) | adversarial (1) |"
    )
    assert least_gain(audited, audited) == (0.0, "1")


@pytest.fixture
def longmemeval(tmp_path: Path) -> Path:
    """Write a file in the published format: one question, and one about what was never said."""
    statement = {"role": "user", "content": "I moved to Turin.", "has_answer": True}
    row = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Where did I move?",
        "answer": "Turin",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["answer_s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/01 (Mon) 02:21"],
        "haystack_sessions": [
            [statement, {"role": "assistant", "content": "Nice.", "has_answer": False}],
            [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": ""}],
        ],
        "answer_session_ids": ["answer_s1"],
    }
    file = tmp_path / "longmemeval.json"
    file.write_text(json.dumps([row, {**row, "question_id": "q2_abs"}]))
    return file


def test_longmemeval_is_read_by_its_own_dates(longmemeval: Path) -> None:
    (conversation,) = read_longmemeval(longmemeval)
    assert [turn["text"] for turn in conversation.turns] == ["Hi.", "I moved to Turin.", "Nice."]
    assert [question.evidence for question in conversation.questions] == [{conversation.turns[1]["id"]}]


@pytest.mark.thorough
def test_the_command_measures_longmemeval_through_the_users_file(
    longmemeval: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.retrieval.is_installed", lambda: False)
    monkeypatch.setattr("sys.argv", ["bench.retrieval", str(tmp_path), "--only", "", "--longmemeval", str(longmemeval)])
    main()
    output = capsys.readouterr().out
    assert "### LongMemEval (longmemeval.json)\n\n| published evidence |" in output
    assert "| memory, lexical | 100.0 | 100.0 | 100.0 | 100.0 to 100.0 | 100.0 | 100.0 | 1 |" in output
    assert "| @10 by category, published | single-session-user (1) |" in output


@pytest.mark.thorough
def test_the_tables_are_printed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.retrieval.is_installed", lambda: False)
    monkeypatch.setattr("sys.argv", ["bench.retrieval", str(folder), "--only", "locomo,search"])
    main()
    output = capsys.readouterr().out
    assert "### LoCoMo (locomo.mine.jsonl.gz)\n\n| published evidence |" in output
    assert "### LoCoMo (locomo.mine.jsonl.gz)\n\n| audited evidence |" in output
    assert "| memory, lexical | 100.0 | 100.0 | 100.0 |" in output


def test_the_table_of_look_ups_has_what_replies_find_more_of(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.retrieval.is_installed", lambda: False)
    monkeypatch.setattr("sys.argv", ["bench.look_ups", str(folder)])
    look_ups.main()
    questions = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps({**each, "queries": ["Turin"]}) + "\n" for each in questions), "utf-8")
    monkeypatch.setattr("sys.argv", ["bench.look_ups", str(folder), "--replies", str(replies)])
    look_ups.main()
    row = capsys.readouterr().out.splitlines()[-1].split(" | ")
    assert row[:3] == ["| lexical, all", "100.0", "100.0"]
    assert row[-1] == f"{len(questions)} |"
