"""What settings name, and which of them are the operator's alone where others send the requests.

A setting that can hold free text says in its type what that names:

    MODEL, STRATEGY    models and strategies, which the operator's rules (`serve.policy`) may limit
    OPERATOR           something of this machine: a file, an address, a command, code outside the sandbox
    TEXT               nothing: what models read, or a name of the caller's own
    OBJECT             nothing that a request can hold: only Python can give it

In a process that serves others, the operator gives his settings by environment variables, and a run that was given
another value is refused, whichever way the value came: in the run's own settings, an assistant's, a worker's, or a
thread's state. A setting whose type does not say what it names is the operator's as well.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, Protocol, get_args, get_origin, runtime_checkable

from pydantic import BaseModel

from reflective_agents.state.errors import OperatorOnly

Kind = Literal["model", "strategy"]


class Operator(NamedTuple):
    """Marks a setting as the operator's. Falsy values, and those that are `harmless`, anybody may give."""

    harmless: Callable[[Any], bool]


class Names(NamedTuple):
    """Marks a setting that names a model or a strategy; the `free` names reach nothing."""

    kind: Kind
    free: tuple[str, ...] = ()


class Harmless(NamedTuple):
    """Marks a setting that names nothing, and says why."""

    why: str


@runtime_checkable
class Nested(Protocol):
    """Marks a setting that holds the settings of another strategy."""

    def read(self, holder: BaseModel, settings: Any) -> BaseModel:
        """Return them as that strategy reads them; `holder` is what they are a setting of."""
        ...


OPERATOR = Operator(lambda _: False)
MODEL, STRATEGY = Names("model"), Names("strategy")
TEXT, OBJECT = Harmless("text"), Harmless("only Python can give it")
Mark = Operator | Names | Harmless | Nested

Ambient = Callable[[], BaseModel]
Check = Callable[[BaseModel, BaseModel], None]

_check: Check | None = None


def serve_others(check: Check = lambda *_: None) -> None:
    """Refuse, from now on in this process, what only the operator may set. For every program that serves graphs.

    Args:
        check: What else the operator does not allow: is given the settings of a run and those that the operator's
            environment makes, and raises `OperatorOnly` if the former break a rule.
    """
    global _check
    _check = check


def serves() -> bool:
    """Tell whether this process runs graphs for others than the operator."""
    return _check is not None


@functools.cache
def marks_of(schema: type[BaseModel]) -> dict[str, tuple[Mark, ...]]:
    """Return what the settings of a strategy name, by their own names; none for those that hold no free text."""
    marks: dict[str, tuple[Mark, ...]] = {}
    for name, field in schema.model_fields.items():
        own = (*_marks(field.metadata), *_marks_in(field.annotation))
        marks[name] = own or _default_marks(field.annotation)
    return marks


@functools.cache
def operators_settings(schema: type[BaseModel]) -> dict[str, Operator]:
    """Return the settings of a strategy that are the operator's alone, by name."""
    operators: dict[str, Operator] = {}
    for name, marks in marks_of(schema).items():
        for mark in marks:
            if isinstance(mark, Operator):
                operators[name] = mark
    return operators


def check_caller(context: BaseModel, ambient: Ambient) -> None:
    """Refuse settings that the caller must not choose. Does nothing in a process that serves nobody.

    Args:
        context: The settings of a run.
        ambient: Returns what the operator's environment says.

    Raises:
        OperatorOnly: if a setting of the operator's differs from that of the environment, or a rule is broken.
    """
    if _check is None:
        return
    defaults = ambient()
    for name, mark in operators_settings(type(context)).items():
        value = _beyond(getattr(context, name), getattr(defaults, name))
        if value and not mark.harmless(value):
            raise OperatorOnly(
                f"{name} reaches this machine, so a request cannot set it: "
                f"the operator does, with REFLECT_{name.upper()} in the server's environment"
            )
    _check(context, defaults)
    for inner in nested_in(context):
        check_caller(inner, getattr(inner, "ambient", functools.partial(_defaults, inner)))


def changed(settings: BaseModel, defaults: BaseModel) -> list[str]:
    """Return the names of the settings that were given, and are not what the operator's environment makes them."""
    return [name for name in sorted(settings.model_fields_set) if getattr(settings, name) != getattr(defaults, name)]


def named_in(settings: BaseModel, setting: str, kind: Kind) -> Iterator[str]:
    """Yield the models, or the strategies, that a setting names, but for those that reach nothing."""
    marks = [mark for mark in marks_of(type(settings))[setting] if isinstance(mark, Names) and mark.kind == kind]
    value = getattr(settings, setting)
    for item in value if isinstance(value, list) else [value]:
        for mark in marks:
            if item and item not in mark.free:
                yield str(item)


def nested_in(settings: BaseModel) -> Iterator[BaseModel]:
    """Yield the settings of others that settings hold: of members, of workers."""
    for name, marks in marks_of(type(settings)).items():
        value = getattr(settings, name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, BaseModel) and not marks:
                yield item
        for mark in marks:
            if isinstance(mark, Nested) and value:
                yield mark.read(settings, value)


def _beyond(value: Any, operators: Any) -> Any:
    """Return what of a setting is not the operator's value: of an object, whatever entries differ; None if nothing."""
    if isinstance(value, Mapping) and isinstance(operators, Mapping):
        return {name: entry for name, entry in value.items() if name not in operators or entry != operators[name]}
    return None if value == operators else value


def _defaults(settings: BaseModel) -> BaseModel:
    """Return what members of a team are where nothing is given."""
    fields = type(settings).model_fields.items()
    defaults = {name: field.get_default(call_default_factory=True) for name, field in fields}
    return settings.model_construct(**defaults)


def _marks(metadata: list[Any] | tuple[Any, ...]) -> tuple[Mark, ...]:
    return tuple(mark for mark in metadata if isinstance(mark, (Operator, Names, Harmless, Nested)))


def _marks_in(annotation: Any) -> tuple[Mark, ...]:
    """Return the marks within a type: those of the items of a list, for example."""
    marks: list[Mark] = []
    if get_origin(annotation) is Annotated:
        marks += _marks(annotation.__metadata__)
    for part in get_args(annotation):
        marks += _marks_in(part)
    return tuple(marks)


def _default_marks(annotation: Any) -> tuple[Mark, ...]:
    return (OPERATOR,) if _holds_text(annotation) else ()


def _holds_text(annotation: Any) -> bool:
    """Tell whether a type leaves open what it holds: it is no number, no choice, and no model with fields."""
    if get_origin(annotation) is Literal or annotation in (int, float, bool, NoneType):
        return False
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return False
    parts = get_args(annotation)
    return not parts or get_origin(annotation) is dict or any(map(_holds_text, parts))
