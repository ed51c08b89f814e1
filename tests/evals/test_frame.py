"""Results as a data frame: what is written into a Parquet file is read again, whatever the results hold."""

from pathlib import Path
from typing import Any

import pytest

from reflective_agents.state.errors import Misuse
from tests.evals.fakes import attempts, make_about, make_result

pq: Any = pytest.importorskip("pyarrow.parquet")
from reflective_agents.evals.frame import Exported, write_frame  # noqa: E402 - needs pyarrow


def read(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return rows


def test_a_row_per_task_says_what_came_of_it(tmp_path: Path) -> None:
    results = [make_result("a", trials=attempts(False, True)), make_result("b", False, calls=7)]
    write_frame(tmp_path / "f.parquet", [Exported("mine", make_about(), results)])
    first, other = read(tmp_path / "f.parquet")
    assert (first["run"], first["strategy"], first["dataset"], first["model"]) == ("mine", "fake", "numbers", "offline")
    assert (first["id"], first["answer"], first["correct"], first["score_em"]) == ("a", "a", True, 1.0)
    assert [trial["correct"] for trial in first["trials"]] == [False, True]
    assert (first["status"], first["seconds"], first["cached_calls"]) == ("solved", 0.5, 0)
    assert (other["correct"], other["model_calls"], other["total_tokens"], other["trials"]) == (False, 7, 70, [])


def test_what_is_not_there_is_null_and_columns_keep_their_types(tmp_path: Path) -> None:
    crash = make_result("c", None, usage=None, outcome=None, answer=None, error="ValueError: \ud800")
    write_frame(tmp_path / "f.parquet", [Exported("mine", make_about(settings={}), [crash])])
    [row] = read(tmp_path / "f.parquet")
    missing = ("gold", "answer", "correct", "status", "model", "model_calls", "cost")
    assert [row[name] for name in missing] == [None] * len(missing)
    assert row["error"] == "ValueError: ?"
    types = {field.name: str(field.type) for field in pq.read_schema(tmp_path / "f.parquet")}
    assert (types["answer"], types["correct"], types["cost"], types["model_calls"]) == (
        "string",
        "bool",
        "double",
        "int64",
    )


def test_runs_of_several_environments_share_a_file(tmp_path: Path) -> None:
    runs = [
        Exported("one", make_about(), [make_result("a")]),
        Exported("other", make_about(), [make_result("a", scores={"passed": 0.0})]),
    ]
    write_frame(tmp_path / "f.parquet", runs)
    assert [(row["run"], row["score_em"], row["score_passed"]) for row in read(tmp_path / "f.parquet")] == [
        ("one", 1.0, None),
        ("other", None, 0.0),
    ]


def test_a_file_that_cannot_be_written_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"--export: .* cannot be written"):
        write_frame(tmp_path / "no such folder" / "f.parquet", [Exported("mine", make_about(), [make_result("a")])])
