"""Lessons: what a trial is told of earlier ones."""

import pytest

from nodes.lessons import advice
from state.context import TrialsContext
from state.trial import Trial


def trial(number: int, reflection: str = "") -> Trial:
    return Trial(
        trial=number,
        answer="sun",
        reward=0.0,
        score=None,
        solved=False,
        outcome="exhausted",
        attempt=f"attempt {number}",
        reflection=reflection,
    )


TRIALS = [trial(1, "first"), trial(2), trial(3, "third")]


@pytest.mark.parametrize(
    ("reflection", "lessons", "attempt"),
    [
        ("none", [], False),
        ("last_attempt", [], True),
        ("reflexion", ["- earlier", "- first", "- third"], False),
        ("last_attempt_and_reflexion", ["- earlier", "- first", "- third"], True),
    ],
)
def test_what_is_told(reflection: str, lessons: list[str], attempt: bool) -> None:
    text = advice(TRIALS, ["earlier"], TrialsContext.model_validate({"reflection": reflection}))
    assert [line for line in text.splitlines() if line.startswith("- ")] == lessons
    assert ("attempt 3" in text) == attempt
    assert "attempt 1" not in text


def test_the_latest_lessons_are_told_where_there_are_too_many() -> None:
    text = advice(TRIALS, ["one", "two"], TrialsContext(memory_size=2))
    assert [line for line in text.splitlines() if line.startswith("- ")] == ["- first", "- third"]


def test_a_first_trial_without_experience_is_told_nothing() -> None:
    assert advice([], [], TrialsContext()) == advice([trial(1)], [], TrialsContext()) == ""
