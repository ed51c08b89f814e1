"""The folder of a run: what was kept is what is read."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reflective_agents.evals.results import RUN, read_run
from reflective_agents.evals.store import Store, folder_of
from reflective_agents.evals.transcripts import Transcript, TranscriptSpan, read_transcript
from tests.evals.fakes import make_about, make_result


def test_transcripts_of_tasks_that_end_at_once_are_kept_apart(tmp_path: Path) -> None:
    store = Store(tmp_path, make_about())

    def keep(name: str) -> None:
        store.append(make_result(name), Transcript(id=name, messages=[], trials=[], reflections=[name], shown={}))

    names = [f"{number:0{number}}" for number in range(1, 60)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(keep, names))
    store.close()
    _, results = read_run(tmp_path)
    assert sorted(results) == sorted(names)
    assert all(read_transcript(tmp_path, result["transcript"], name) for name, result in results.items())


@pytest.mark.parametrize("span", [[0, 9], [3, 90], [10_000, 90], [0, 10_000]])
def test_a_transcript_that_does_not_lie_where_it_should_is_left_out(tmp_path: Path, span: TranscriptSpan) -> None:
    store = Store(tmp_path, make_about())
    for name in "ab":
        store.append(make_result(name), Transcript(id=name, messages=[], trials=[], reflections=[], shown={}))
    store.close()
    _, results = read_run(tmp_path)
    assert read_transcript(tmp_path, span, "a") is None
    assert read_transcript(tmp_path, results["b"]["transcript"], "a") is None


@pytest.mark.parametrize("broken", [RUN, "results.jsonl"])
def test_a_broken_neighbour_is_another_run(broken: str, tmp_path: Path) -> None:
    about = make_about()
    neighbour = folder_of({**about, "fingerprint": "f" * 16}, tmp_path)
    Store(neighbour, {**about, "fingerprint": "f" * 16}).close()
    (neighbour / broken).write_text("broken\n")
    own = folder_of(about, tmp_path)
    Store(own, about).close()
    assert own != neighbour
    assert folder_of(about, tmp_path) == own


def test_a_data_set_may_be_called_like_a_pattern(tmp_path: Path) -> None:
    about = make_about(dataset="all[1]*")
    folder = tmp_path / "fake-all[1]*-begun-before"
    Store(folder, about).close()
    assert folder_of(about, tmp_path) == folder
