"""The settings of every strategy: `state.settings.<name>` holds those of `graphs.<name>`, a subclass of `Context`.

The modules in here are the register of strategies. Nothing else lists them.
"""

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from reflective_agents.state.errors import UnknownStrategy
from reflective_agents.text.spelling import similar_names

if TYPE_CHECKING:
    from reflective_agents.state.context import Context


@cache
def strategy_names() -> tuple[str, ...]:
    """List the names of all strategies."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def check_name(name: str) -> str:
    """Return the name of a strategy if there is such a strategy.

    Raises:
        UnknownStrategy: if there is none; the text names those that exist, the closest first.
    """
    if name not in strategy_names():
        close = similar_names(name.lower(), strategy_names())
        hint = f"did you mean {close[0]}? There are" if close else "there are"
        raise UnknownStrategy(f"unknown strategy {name[:100]!r}: {hint} {', '.join(strategy_names())}")
    return name


@cache
def settings_of(name: str) -> "type[Context]":
    """Return the settings of a strategy: the one subclass of `Context` that its module defines.

    Raises:
        UnknownStrategy: as `check_name`.
    """
    from reflective_agents.state.context import Context

    module = import_module(f"{__name__}.{check_name(name)}")
    contexts = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Context)]
    [schema] = [value for value in contexts if value.__module__ == module.__name__]
    return schema


@cache
def employable(level: int) -> tuple[str, ...]:
    """List the strategies that one of this level may employ: those of the levels below."""
    levels = {name: settings_of(name).level for name in strategy_names()}
    return tuple(name for name, lowest in levels.items() if lowest is not None and lowest < level)
