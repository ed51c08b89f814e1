"""Which settings are the operator's alone where others send the requests.

A setting that reaches the machine - its files, or the right to run code outside the sandbox - is marked where it is
defined: `corpus: Annotated[str | None, OPERATOR] = ...`. In a process that serves others, the operator gives it by an
environment variable, and a run that was given another value is refused, whichever way the value came: in the run's own
settings, an assistant's, a worker's, or a thread's state.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel

from reflective_agents.state.errors import OperatorOnly


class Operator(NamedTuple):
    """Marks a setting as the operator's. Falsy values, and those that are `harmless`, anybody may give."""

    harmless: Callable[[Any], bool]


OPERATOR = Operator(lambda _: False)

Ambient = Callable[[], BaseModel]
Check = Callable[[BaseModel, Ambient], None]

_check: Check | None = None


def serve_others(check: Check = lambda *_: None) -> None:
    """Refuse, from now on in this process, what only the operator may set. For every program that serves graphs.

    Args:
        check: What else the operator does not allow: raises `OperatorOnly` for the settings of a run that break a rule.
    """
    global _check
    _check = check


@functools.cache
def operators_settings(schema: type[BaseModel]) -> dict[str, Operator]:
    """Return the settings of a strategy that are the operator's alone, by name."""
    marks = ((name, mark) for name, field in schema.model_fields.items() for mark in field.metadata)
    return {name: mark for name, mark in marks if isinstance(mark, Operator)}


def check_caller(context: BaseModel, ambient: Ambient) -> None:
    """Refuse settings that the caller must not choose. Does nothing in a process that serves nobody.

    Args:
        context: The settings of a run.
        ambient: Returns what the operator's environment says.

    Raises:
        OperatorOnly: if a setting of the operator's has another value than he gave it.
    """
    if _check is None:
        return
    for name, mark in operators_settings(type(context)).items():
        value = getattr(context, name)
        if value and value != getattr(ambient(), name) and not mark.harmless(value):
            raise OperatorOnly(
                f"{name} reaches this machine, so a request cannot set it: "
                f"the operator does, with REFLECT_{name.upper()} in the server's environment"
            )
    _check(context, ambient)
