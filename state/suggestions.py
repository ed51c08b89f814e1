"""Errors about settings that do not exist, with the names that they resemble."""

from collections.abc import Container, Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from reflective_agents.text.spelling import similar_names

EXTRA = "extra_forbidden"
_MOST_HINTS = 10


def with_suggestions(error: ValidationError, settings: Iterable[str]) -> ValidationError:
    """Return the error with the setting that each unknown one resembles; without unknown ones, the error as it is.

    Of many unknown ones it tells the first ten.
    """
    names = list(settings)
    unknown = [problem for problem in error.errors() if problem["type"] == EXTRA and len(problem["loc"]) == 1]
    if not unknown:
        return error
    problems: list[InitErrorDetails] = []
    for problem in unknown[:_MOST_HINTS]:
        hint = _problem(str(problem["loc"][0]), names)
        problems.append(InitErrorDetails(type=hint, loc=problem["loc"], input=problem["input"]))
    return ValidationError.from_exception_data(error.title, problems)


def few_unknown(values: dict[str, Any], settings: Container[str]) -> dict[str, Any]:
    """Return the values without the unknown ones that no error would tell of."""
    # Pydantic alone would take seconds for the errors of 100,000 names, and a stranger may send them.
    unknown = [name for name in values if name not in settings]
    untold = set(unknown[_MOST_HINTS:])
    if not untold:
        return values
    return {name: value for name, value in values.items() if name not in untold}


def _problem(name: str, names: list[str]) -> PydanticCustomError:
    close = similar_names(name, names)
    hint = f"; did you mean {close[0]}?" if close else ""
    return PydanticCustomError(EXTRA, "There is no such setting{hint}", {"hint": hint})
