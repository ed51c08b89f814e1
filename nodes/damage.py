"""Threads that hold what no run writes: looked at only once a run has failed on them, so that others cost nothing."""

from collections.abc import Mapping
from functools import cache
from traceback import walk_tb
from types import UnionType
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from langchain_core.messages import BaseMessage
from pydantic import AfterValidator, ConfigDict, InstanceOf, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from reflective_agents.state.errors import WrongThread

FAILURES = (TypeError, ValueError, AttributeError, LookupError, NotImplementedError)
"""What code raises that meets data of another type than it was written for."""
Message = Annotated[InstanceOf[BaseMessage], AfterValidator(lambda message: type(message)(**vars(message)))]
"""A message whose parts are of the right types: one that is read from a checkpoint is made in any case."""


def damage(schema: type, values: Mapping[str, object], error: Exception | None = None) -> WrongThread | None:
    """Return the refusal of a thread that holds values of other types than its strategy writes; None if all fit.

    Args:
        schema: The strategy's state.
        values: What the thread holds, by the channels that were written.
        error: What a run has failed with on it, if one has.
    """
    for name, adapter in _adapters(schema).items():
        if name not in values or (values[name] == {} and name in _mappings(schema)):  # it was never written
            continue
        try:
            adapter.validate_python(values[name], strict=True)
        except ValidationError as invalid:
            return _refusal(f"holds in {name!r} what no run writes ({invalid.errors()[0]['type']})")
    if error and not values.get("messages", True):
        return _refusal("holds no message")
    if isinstance(error, KeyError) and _raised_in(error, "reflective_agents."):  # one's own code is not the thread's
        for name, value in values.items():
            if isinstance(value, str) and error.args == (value,):
                return _refusal(f"names in {name!r} what it does not hold")
        return None
    return unreadable(error) if error and _raised_in(error, "langgraph.channels.") else None


def unreadable(error: Exception) -> WrongThread:
    """Return the refusal of a thread whose checkpoints cannot even be put together."""
    return _refusal(f"cannot be read ({type(error).__name__}), it is damaged")


def is_the_savers(error: Exception) -> bool:
    """Tell whether a checkpointer lacks what was called: one that is synchronous only cannot be awaited."""
    reads_data = _raised_in(error, "langgraph.checkpoint.serde.")
    return isinstance(error, NotImplementedError) and _raised_in(error, "langgraph.checkpoint.") and not reads_data


def _refusal(reason: str) -> WrongThread:
    return WrongThread(f"this thread {reason}: choose another thread")


def _raised_in(error: Exception, package: str) -> bool:
    """Tell whether it was code of a package that could do nothing with a value, as the last that is not Python's."""
    names = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    own = [name for name in names if name != "collections"]
    return bool(own) and own[-1].startswith(package)


@cache
def _adapters(schema: type) -> dict[str, TypeAdapter[object]]:
    hints = {**get_type_hints(schema), "messages": list[Message]}
    return {name: _adapter(hint) for name, hint in hints.items()}


@cache
def _mappings(schema: type) -> frozenset[str]:
    """Return the channels that LangGraph reads as an empty dict where nothing was written."""
    hints = get_type_hints(schema, include_extras=True)
    return frozenset(name for name, hint in hints.items() if "DeltaChannel" in str(hint) or _is_mapping(hint))


def _is_mapping(hint: Any) -> bool:
    kind = get_origin(hint) or hint
    if kind in (Annotated, Required, NotRequired, Union, UnionType):
        return any(map(_is_mapping, get_args(hint)))
    return is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, Mapping))


def _adapter(hint: Any) -> TypeAdapter[object]:
    config = None if is_typeddict(hint) else ConfigDict(arbitrary_types_allowed=True)  # it may have its own
    return TypeAdapter(hint, config=config)
