"""What all libraries share: the parts that a user brings, which no library counts, and what shows a task as done."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel

MODEL = "openai:scripted"
PEOPLE = "2,102,650"
BEST = "2,102,650 people, by the census of 2023."


class City(BaseModel):
    """A city, as a product shows it."""

    name: str
    people: int


def population(city: str) -> str:
    """Return the number of people in a city."""
    return {"Paris": PEOPLE}.get(city, "unknown")


CRITERION = "The answer says what it counts."


def reward(answer: str) -> float:
    """Score an answer from 0 to 1."""
    return 1.0 if "census" in answer else 0.2


def problem(answer: str) -> str | None:
    """Say what is wrong with a draft; None if nothing is."""
    return None if "people" in answer else "Say of what."


class Task(NamedTuple):
    """A task: the function of each library's module that does it, what it is, and whether it was done."""

    name: str
    what: str
    done: Callable[[Any, int], bool]
    """Takes what the function returned, as plain data, and how many calls of the model it made."""


TASKS = [
    Task("use_tool", "answer with a tool", lambda answer, calls: PEOPLE in answer and calls >= 2),
    Task("revise", "revise a draft until a check of yours passes", lambda answer, calls: problem(answer) is None),
    Task("choose", "the best of four answers, by a judge", lambda answer, calls: answer == BEST),
    Task("choose_by", "the best of four answers, by a function of yours", lambda answer, calls: answer == BEST),
    Task("criteria", "revise a draft until criteria in words are met", lambda answer, calls: problem(answer) is None),
    Task("fill_in", "an answer as a pydantic class", lambda city, calls: city == {"name": "Paris", "people": 2102650}),
    Task("stop", "end after three calls of the model", lambda answer, calls: calls == 3),
    Task("go_on", "a second question on the same thread", lambda answer, calls: answer == "The mayor of Paris."),
]
