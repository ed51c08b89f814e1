"""What is known of each task of a run, and how it is read from its folder; `evals.store` writes there.

    run.json               what was run: strategy, settings, data set, versions
    results.jsonl          one line a task, written as it ends
    transcripts.jsonl.gz   what each task leaves behind besides its answer

A line that was half written when the process was killed is dropped, and its task is run again. Of two lines for one
task the later one counts.
"""

import json
from pathlib import Path
from typing import NotRequired, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from reflective_agents.environments.base import Task
from reflective_agents.evals.transcripts import TranscriptSpan
from reflective_agents.state.errors import Misuse, reason_of
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.run import Usage
from reflective_agents.text.validation import in_plain_words

RUN, RESULTS = "run.json", "results.jsonl"


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
    if result["error"]:
        return result["error"]
    return outcome["reason"] if outcome and failed(result) else ""


def read_run(folder: Path) -> tuple[About, dict[str, Result]]:
    """Read what is known of a run, whether it has ended or not.

    Raises:
        Misuse: if the folder holds none, or a file in it cannot be read.
    """
    about, file = read_about(folder), folder / RESULTS
    try:
        data = file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise Misuse(f"the run in {folder} cannot be read ({reason_of(error)})") from error
    whole = data[: data.rfind(b"\n") + 1]
    results: dict[str, Result] = {}
    for number, line in enumerate(whole.splitlines(), 1):
        result = _result(folder, number, line)
        results[result["id"]] = result
    return about, results


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
        raise Misuse(f"the run in {folder} cannot be read ({reason_of(error)})") from error
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
                field = ".".join(map(str, wrong["loc"]))
                return f"{field}: {in_plain_words(wrong['msg'])}"
    return ""
