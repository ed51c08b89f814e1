"""What is known of each task of a run, and the folder in which it is kept.

    run.json               what was run: strategy, settings, data set, versions
    results.jsonl          one line a task, written as it ends
    transcripts.jsonl.gz   what each task leaves behind besides its answer

A line that was half written when the process was killed is dropped, and its task is run again. Of two lines for one
task the later one counts.
"""

import hashlib
import json
import os
from contextlib import ExitStack
from glob import escape
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Literal, NotRequired, cast

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from reflective_agents.environments.base import Task
from reflective_agents.evals.transcripts import TRANSCRIPTS, Transcript, TranscriptSpan, packed
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.run import Usage
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.text.validation import in_plain_words

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
    extracted: NotRequired[str]
    """The short answer that was taken from the reply and counted, where it is not the whole reply."""
    grading: NotRequired[Usage]
    """What a model that graded the answer has taken; it is not in the usage."""
    cached_calls: NotRequired[int]
    """Calls that the response cache has answered; they are not in the usage."""
    transcript: NotRequired[TranscriptSpan]
    """Where its transcript lies. A result of an earlier version has none, and neither has one that crashed."""


class About(TypedDict):
    """What was run. Two runs with the same strategy, settings and fingerprint are one and the same."""

    strategy: str
    settings: JsonObject
    dataset: str
    environment: str
    fingerprint: str
    tasks: int
    versions: dict[str, str]
    started: str
    correct_if: NotRequired[str]
    """What counted as correct, in words that complete "an answer is correct if"."""
    scorer: NotRequired[str]
    """What says so, where it is not the environment of the tasks."""


_RESULT, _ABOUT = TypeAdapter(Result), TypeAdapter(About)
_SAME: tuple[Literal["strategy", "fingerprint"], ...] = ("strategy", "fingerprint")


def empty_result(task: Task) -> Result:
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


def usages_of(result: Result) -> list[Usage]:
    """Return what a task has spent: its run, and a model that graded its answer."""
    return [usage for usage in (result["usage"], result.get("grading")) if usage]


def failed(result: Result) -> bool:
    """Return whether a task crashed, or its run failed: another try may go better."""
    outcome = result["outcome"]
    return result["error"] is not None or (outcome is not None and outcome["status"] == "failed")


def why_failed(result: Result) -> str:
    """Say why a task crashed, or its run failed; empty if neither."""
    outcome = result["outcome"]
    return result["error"] or (outcome["reason"] if outcome and failed(result) else "")


class Store:
    """The folder of a run, open for writing; nobody else can write to it meanwhile.

    Attributes:
        about: What is run, as it was first said.
        results: The results so far, by the id of the task.
        close: Lets others write.
    """

    def __init__(self, folder: Path, about: About | None) -> None:
        """Open a folder: a new one, or that of an earlier, interrupted run of the same. With None it must hold a
        run, whichever.

        Raises:
            Misuse: if it holds another run, is in use, or cannot be written.
        """
        self._file = folder / RESULTS
        self._turn = Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                undo.enter_context(FileLock(folder / LOCK, blocking=False, thread_local=False))
                self._open(folder, about, undo)
                # Only if all has gone well; otherwise the lock is given back here.
                self.close = undo.pop_all().close
        except Timeout as error:
            raise Misuse(f"{folder} is in use by another process: wait for it, or choose another --out") from error
        except OSError as error:
            raise Misuse(f"{folder} cannot be written ({error.strerror or error}): choose another --out") from error

    def _open(self, folder: Path, about: About | None, undo: ExitStack) -> None:
        self.about: About
        self.results: dict[str, Result] = {}
        if (folder / RUN).exists():
            self.about, self.results = read_run(folder)
            _check_same(folder, self.about, about or self.about)
            whole = self._file.read_bytes().rfind(b"\n") + 1 if self._file.exists() else 0
        elif self._file.exists() or about is None:
            raise Misuse(f"{folder} holds {RESULTS} but no {RUN}: choose another --out")
        else:
            self.about, whole = about, 0
            _write_at_once(folder / RUN, json.dumps(about, indent=2, ensure_ascii=False))
        self._lines = undo.enter_context(self._file.open("ab"))
        # Cuts a half-written line off, which would spoil the next one.
        self._lines.truncate(whole)
        self._transcripts = undo.enter_context((folder / TRANSCRIPTS).open("ab"))

    def describe(self, about: About) -> None:
        """Replace what is said of the run."""
        self.about = about
        _write_at_once(self._file.with_name(RUN), json.dumps(about, indent=2, ensure_ascii=False))

    def append(self, result: Result, transcript: Transcript | None = None) -> None:
        """Keep a result for good: it is on the disk when this returns, and its transcript before it. Blocks; threads
        take turns.

        Raises:
            Misuse: if it cannot be written.
        """
        try:
            with self._turn:
                if transcript is not None:
                    data = packed(transcript)
                    # Before the result: one that points to nothing would be worse than a transcript that
                    # nothing points to.
                    result["transcript"] = [self._transcripts.tell(), len(data)]
                    _flush(self._transcripts, data)
                _flush(self._lines, json.dumps(result, ensure_ascii=True).encode() + b"\n")
        except OSError as error:
            raise Misuse(f"{self._file.parent} cannot be written ({error.strerror or error})") from error
        self.results[result["id"]] = result


def _flush(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def folder_of(about: About, parent: Path) -> Path:
    """Return the folder of a run: the one that holds the same run already, whichever release began it, else a new
    one. A neighbour that cannot be read is another run."""
    folders = sorted(parent.glob(f"{escape(about['strategy'])}-{escape(about['dataset'])}-*"))
    return next((folder for folder in folders if _holds(folder, about)), parent / name_of_run(about))


def _holds(folder: Path, about: About) -> bool:
    try:
        return not _differences(read_about(folder), about)
    except Misuse:
        return False


def name_of_run(about: About) -> str:
    """Return the name of a run: its strategy, its data set, and a digest of all that tells it from others."""
    scorer = [about["scorer"]] if "scorer" in about else []
    text = json.dumps([about["strategy"], about["settings"], about["fingerprint"], *scorer], sort_keys=True)
    return f"{about['strategy']}-{about['dataset']}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def read_run(folder: Path) -> tuple[About, dict[str, Result]]:
    """Read what is known of a run, whether it has ended or not.

    Raises:
        Misuse: if the folder holds none, or a file in it cannot be read.
    """
    about, file = read_about(folder), folder / RESULTS
    try:
        data = file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise Misuse(f"the run in {folder} cannot be read ({error})") from error
    whole = data[: data.rfind(b"\n") + 1]
    results = (_result(folder, number, line) for number, line in enumerate(whole.splitlines(), 1))
    return about, {result["id"]: result for result in results}


def read_about(folder: Path) -> About:
    """Read what was run, without its results.

    Raises:
        Misuse: as `read_run`.
    """
    try:
        about = json.loads((folder / RUN).read_text("utf-8"))
    except FileNotFoundError as error:
        raise Misuse(f"{folder} holds no run: name a folder that reflect eval has written") from error
    except (OSError, ValueError, RecursionError) as error:
        raise Misuse(f"the run in {folder} cannot be read ({error})") from error
    if not isinstance(about, dict) or not about.keys() >= About.__required_keys__:
        raise Misuse(f"{folder / RUN} does not say what was run")
    if wrong := _wrong(_ABOUT, about):
        raise Misuse(f"{folder / RUN} does not say what was run ({wrong})")
    return cast(About, about)


def _result(folder: Path, number: int, line: bytes) -> Result:
    where = f"{folder / RESULTS}, line {number}"
    try:
        result = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Misuse(f"{where}: not valid JSON ({error}); remove the line, and its task is run again") from error
    if not isinstance(result, dict) or not result.keys() >= Result.__required_keys__:
        raise Misuse(f"{where}: no result; remove the line, and its task is run again")
    if wrong := _wrong(_RESULT, result):
        raise Misuse(f"{where}: {wrong}; remove the line, and its task is run again")
    return cast(Result, result)


def _wrong(schema: TypeAdapter[About] | TypeAdapter[Result], value: JsonObject) -> str:
    """Say which field holds what it cannot; nothing if all is well. A field that is missing may be younger."""
    try:
        schema.validate_python(value, strict=True)
    except ValidationError as error:
        for wrong in error.errors():
            if wrong["type"] != "missing":
                return f"{'.'.join(map(str, wrong['loc']))}: {in_plain_words(wrong['msg'])}"
    return ""


def _check_same(folder: Path, stored: About, about: About) -> None:
    """Refuse to mix two runs in one folder."""
    if stored is not about and (differences := _differences(stored, about)):
        raise Misuse(f"{folder} holds another run ({', '.join(differences)}): choose another --out")


def _differences(stored: About, about: About) -> list[str]:
    """Say in what two runs differ. A setting that was added since the earlier one had its default then."""
    schema = settings_of(about["strategy"]) if about["strategy"] in strategy_names() else Context
    before = schema.in_new_names(stored["settings"])
    defaults = {name: field.default for name, field in schema.model_fields.items()}
    pairs: dict[str, tuple[Any, Any]] = {name: (stored[name], about[name]) for name in _SAME}
    pairs["scorer"] = stored.get("scorer"), about.get("scorer")
    for name in {**before, **about["settings"]}:
        pairs[name] = before.get(name, defaults.get(name)), about["settings"].get(name)
    return [f"{name}: {old} there, {new} now" for name, (old, new) in pairs.items() if old != new]


def _write_at_once(file: Path, text: str) -> None:
    """Write a file so that it is there in full or not at all."""
    partial = file.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)
