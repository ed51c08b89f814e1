"""What is known of each task of a run, and the folder in which it is kept.

    run.json        what was run: strategy, settings, data set, versions
    results.jsonl   one line a task, written as it ends

A line that was half written when the process was killed is dropped, and its task is run again. Of two lines for one
task the later one counts.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, cast

from filelock import FileLock, Timeout
from typing_extensions import TypedDict

from environments.base import Task
from state.errors import Misuse
from state.run import Outcome, Usage

RUN, RESULTS, LOCK = "run.json", "results.jsonl", "lock"


class Attempt(TypedDict):
    """One trial of a task, for strategies that make several."""

    answer: str | None
    solved: bool
    """What the run itself thought of it."""
    correct: bool
    """What it is worth, measured outside the run."""
    best_correct: bool
    """What the best trial up to this one is worth: the run would have returned its answer if it had ended here."""


class Result(TypedDict):
    """What came of one task."""

    id: str
    question: str
    gold: str | None
    answer: str | None
    correct: bool | None
    """None where the right answer is not known. A task without an answer, or with an error, is not correct."""
    scores: dict[str, float]
    """Each from 0 to 1, by the name that the environment gives it; empty where nothing was measured."""
    outcome: Outcome | None
    usage: Usage | None
    trials: list[Attempt]
    seconds: float
    """From the question to the answer, without the measuring."""
    error: str | None
    """What made the task crash."""


class About(TypedDict):
    """What was run. Two runs with the same strategy, settings and fingerprint are one and the same."""

    strategy: str
    settings: dict[str, Any]
    dataset: str
    environment: str
    fingerprint: str
    tasks: int
    versions: dict[str, str]
    started: str


_SAME: tuple[Literal["strategy", "settings", "fingerprint"], ...] = ("strategy", "settings", "fingerprint")


def nothing_yet(task: Task) -> Result:
    """Return the result of a task that has only been put."""
    return {
        "id": task["id"],
        "question": task["question"],
        "gold": task.get("gold"),
        "answer": None,
        "correct": None,
        "scores": {},
        "outcome": None,
        "usage": None,
        "trials": [],
        "seconds": 0.0,
        "error": None,
    }


def failed(result: Result) -> bool:
    """Return whether a task crashed, or its run failed: another try may go better."""
    outcome = result["outcome"]
    return result["error"] is not None or (outcome is not None and outcome["status"] == "failed")


class Store:
    """The folder of a run, open for writing; nobody else can write to it meanwhile.

    Attributes:
        about: What is run, as it was first said.
        results: The results so far, by the id of the task.
        close: Lets others write.
    """

    def __init__(self, folder: Path, about: About) -> None:
        """Open a folder: a new one, or that of an earlier, interrupted run of the same.

        Raises:
            Misuse: if it holds another run, is in use, or cannot be written.
        """
        self._file = folder / RESULTS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                undo.enter_context(FileLock(folder / LOCK, blocking=False, thread_local=False))
                self._open(folder, about, undo)
                self.close = undo.pop_all().close
        except Timeout as error:
            raise Misuse(f"{folder} is in use by another process: wait for it, or choose another --out") from error
        except OSError as error:
            raise Misuse(f"{folder} cannot be written ({error.strerror or error}): choose another --out") from error

    def _open(self, folder: Path, about: About, undo: ExitStack) -> None:
        self.results: dict[str, Result] = {}
        if (folder / RUN).exists():
            self.about, self.results = read_run(folder)
            _same(folder, self.about, about)
            whole = self._file.read_bytes().rfind(b"\n") + 1 if self._file.exists() else 0
        elif self._file.exists():
            raise Misuse(f"{folder} holds {RESULTS} but no {RUN}: choose another --out")
        else:
            self.about, whole = about, 0
            _write_at_once(folder / RUN, json.dumps(about, indent=2, ensure_ascii=False))
        self._lines = undo.enter_context(self._file.open("ab"))
        self._lines.truncate(whole)

    def append(self, result: Result) -> None:
        """Keep a result for good: it is on the disk when this returns. Blocks.

        Raises:
            Misuse: if it cannot be written.
        """
        line = json.dumps(result, ensure_ascii=True).encode() + b"\n"
        try:
            self._lines.write(line)
            self._lines.flush()
            os.fsync(self._lines.fileno())
        except OSError as error:
            raise Misuse(f"{self._file} cannot be written ({error.strerror or error})") from error
        self.results[result["id"]] = result


def folder_name(about: About) -> str:
    """Return the name of a folder for a run: the same run has the same one, another run another one."""
    text = json.dumps([about[name] for name in _SAME], sort_keys=True)
    return f"{about['strategy']}-{about['dataset']}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def read_run(folder: Path) -> tuple[About, dict[str, Result]]:
    """Read what is known of a run, whether it has ended or not.

    Raises:
        Misuse: if the folder holds none, or a file in it cannot be read.
    """
    try:
        about = json.loads((folder / RUN).read_text("utf-8"))
        data = (folder / RESULTS).read_bytes() if (folder / RESULTS).exists() else b""
    except FileNotFoundError as error:
        raise Misuse(f"{folder} holds no run: name a folder that reflect eval has written") from error
    except (OSError, ValueError) as error:
        raise Misuse(f"the run in {folder} cannot be read ({error})") from error
    if not isinstance(about, dict) or not about.keys() >= About.__required_keys__:
        raise Misuse(f"{folder / RUN} does not say what was run")
    whole = data[: data.rfind(b"\n") + 1]
    results = (_result(folder, number, line) for number, line in enumerate(whole.splitlines(), 1))
    return cast(About, about), {result["id"]: result for result in results}


def _result(folder: Path, number: int, line: bytes) -> Result:
    where = f"{folder / RESULTS}, line {number}"
    try:
        result = json.loads(line)
    except ValueError as error:
        raise Misuse(f"{where}: no JSON ({error}); remove the line, and its task is run again") from error
    if not isinstance(result, dict) or not result.keys() >= Result.__required_keys__:
        raise Misuse(f"{where}: no result; remove the line, and its task is run again")
    return cast(Result, result)


def _same(folder: Path, there: About, wanted: About) -> None:
    """Refuse to mix two runs in one folder."""
    for name in _SAME:
        if there[name] != wanted[name]:
            difference = f"{name}: {_difference(there[name], wanted[name])}"
            raise Misuse(f"{folder} holds another run ({difference}): choose another --out")


def _difference(there: Any, wanted: Any) -> str:
    if not isinstance(there, Mapping):
        return f"{there} there, {wanted} now"
    names = [name for name in {**there, **wanted} if there.get(name) != wanted.get(name)]
    return ", ".join(f"{name} {there.get(name)} there, {wanted.get(name)} now" for name in names)


def _write_at_once(file: Path, text: str) -> None:
    """Write a file so that it is there in full or not at all."""
    partial = file.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)
