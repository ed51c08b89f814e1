"""What is said of a setting that a strategy does not have."""

import difflib
from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

EXTRA = "extra_forbidden"


def with_suggestions(error: ValidationError, known: Iterable[str]) -> ValidationError:
    """Return the error with the setting that each unknown one resembles; without unknown ones, the error as it is."""
    names = list(known)
    unknown = [problem for problem in error.errors() if problem["type"] == EXTRA and len(problem["loc"]) == 1]
    found = [
        InitErrorDetails(type=_problem(str(problem["loc"][0]), names), loc=problem["loc"], input=problem["input"])
        for problem in unknown
    ]
    return ValidationError.from_exception_data(error.title, found) if found else error


def _problem(name: str, known: list[str]) -> PydanticCustomError:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return PydanticCustomError(EXTRA, "There is no such setting{hint}", {"hint": hint})
