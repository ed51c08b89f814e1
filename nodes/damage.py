"""Threads that hold what no run writes: looked at only once a run has failed on them, so that others cost nothing."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_type_hints

from langchain_core.messages import BaseMessage
from pydantic import AfterValidator, ConfigDict, InstanceOf, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from reflective_agents.state.errors import WrongThread

FAILURES = (TypeError, ValueError, AttributeError, LookupError, NotImplementedError)
"""What code raises that meets data of another type than it was written for."""
Message = Annotated[InstanceOf[BaseMessage], AfterValidator(lambda message: type(message)(**vars(message)))]
"""A message whose parts are of the right types: one that is read from a checkpoint is made in any case."""


def damage(schema: type, values: Mapping[str, object]) -> WrongThread | None:
    """Return the refusal of a thread that holds values of other types than its strategy writes; None if all fit.

    Args:
        schema: The strategy's state.
        values: What the thread holds, by the channels that were written.
    """
    for name, adapter in _adapters(schema).items():
        try:
            if values.get(name, {}) != {}:  # as is a delta channel that was never written
                adapter.validate_python(values[name], strict=True)
        except ValidationError as error:
            return WrongThread(
                f"this thread holds in {name!r} what no run writes ({error.errors()[0]['type']}): choose another thread"
            )
    return None


def unreadable(error: Exception) -> WrongThread:
    """Return the refusal of a thread whose checkpoints cannot even be put together."""
    return WrongThread(f"this thread cannot be read ({type(error).__name__}), it is damaged: choose another thread")


@cache
def _adapters(schema: type) -> dict[str, TypeAdapter[object]]:
    hints = {**get_type_hints(schema), "messages": list[Message]}
    return {name: _adapter(hint) for name, hint in hints.items()}


def _adapter(hint: Any) -> TypeAdapter[object]:
    config = None if is_typeddict(hint) else ConfigDict(arbitrary_types_allowed=True)  # it may have its own
    return TypeAdapter(hint, config=config)
