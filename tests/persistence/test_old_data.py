"""What was stored under earlier versions of the state is read, shown and gone on with."""

import json
import lzma
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reflective_agents.cli.main import main
from tests.old_data.make_old_data import EVALUATION
from tests.old_data.reading import read_memories, read_threads

V1 = Path(__file__).parent.parent / "old_data" / "v1"
EXPECTED: dict[str, Any] = json.loads((V1 / "expected.json").read_text("utf-8"))
THREADS: dict[str, dict[str, Any]] = EXPECTED["threads"]
ENDED = [name for name, thread in THREADS.items() if thread["answer"]]
STOPPED = [name for name, thread in THREADS.items() if thread["status"] == "unfinished"]
OPTIONS = {"memory": ["--user", "ada"], "lats": ["--n", "2", "--max-expansions", "2"]}


class Output(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


Reflect = Callable[..., Output]


@pytest.fixture(autouse=True)
def home(index_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Unpack the home of the command, and work in an empty folder."""
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    monkeypatch.setenv("REFLECT_CACHE_DIR", index_folder)
    home = Path(os.environ["REFLECT_HOME"])
    home.mkdir(mode=0o700, parents=True)
    for name in ("threads.sqlite", "memory.sqlite"):
        (home / name).write_bytes(lzma.decompress((V1 / f"{name}.xz").read_bytes()))
    shutil.copytree(V1 / "evals", home / "evals")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    shutil.copy(V1 / "arithmetic.jsonl", ".")
    return home


@pytest.fixture
def reflect(capsys: pytest.CaptureFixture[str]) -> Reflect:
    """Return the command, called in this process."""

    def call(*args: str) -> Output:
        code = main(list(args))
        captured = capsys.readouterr()
        return Output(code, captured.out, captured.err)

    return call


async def test_threads_and_memories_hold_what_they_held() -> None:
    assert await read_threads() == THREADS
    assert await read_memories() == EXPECTED["memories"]


def test_threads_are_listed_and_drawn(reflect: Reflect) -> None:
    rows = [line.split("\t") for line in reflect("threads", "--limit", "100").out.splitlines()[1:]]
    listed = {row[0]: (row[1], row[3]) for row in rows}
    assert listed == {name: (thread["strategy"], thread["status"]) for name, thread in THREADS.items()}
    drawn = reflect("draw", "lats", "--thread", "finished-lats")
    assert len(drawn.out.splitlines()) == THREADS["finished-lats"]["nodes"]


@pytest.mark.parametrize("thread", ENDED)
def test_a_conversation_goes_on(reflect: Reflect, thread: str) -> None:
    strategy = THREADS[thread]["strategy"]
    output = reflect("run", strategy, "And what does it cost?", "--thread", thread, *OPTIONS.get(strategy, []))
    assert output.code == 0, output.err
    assert f"thread {thread} (continued)" in output.err


@pytest.mark.parametrize("thread", STOPPED)
def test_a_run_that_was_broken_off_goes_on(reflect: Reflect, thread: str) -> None:
    strategy = THREADS[thread]["strategy"]
    output = reflect("run", strategy, "--thread", thread, "--resume", "--json", *OPTIONS.get(strategy, []))
    data = json.loads(output.out)
    assert (output.code, bool(data["answer"])) == (0, True), output.err
    assert data["usage"]["model_calls"] > THREADS[thread]["calls"]


def test_a_run_that_waits_for_a_person_takes_the_critique(reflect: Reflect) -> None:
    output = reflect(
        "run", "reflection", "--thread", "waiting-reflection", "--resume", "--critique", "accept", "--json"
    )
    assert json.loads(output.out)["outcome"]["verified_by"] == "person"


def test_lessons_are_recalled(reflect: Reflect) -> None:
    output = reflect("run", "react", "Who was chess champion in 1972?", "--experience", "chess", "--max-actions", "1")
    assert "recalled: lessons=" in output.err


@pytest.mark.thorough
def test_an_evaluation_that_was_broken_off_goes_on(reflect: Reflect, home: Path) -> None:
    [results] = home.glob("evals/*/results.jsonl")
    before = results.read_bytes()
    output = reflect(*EVALUATION, "--json")
    counts = ("finished", "correct", "errors")
    summary = json.loads(output.out)
    assert {name: summary[name] for name in counts} == {name: EXPECTED["summary"][name] for name in counts}
    assert results.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert [line.partition(" ")[0] for line in output.err.splitlines() if "/3 tasks" in line] == ["3/3"]


def test_what_is_kept_is_small_and_names_no_machine() -> None:
    files = [path for path in V1.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 60_000
    for path in files:
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        assert not re.search(rb"/(tmp|work|home|root|Users)/|sk-\w{8}", data), path.name
