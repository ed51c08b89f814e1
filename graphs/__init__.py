"""The strategies: `graphs.<name>` has a `builder` and, compiled without a saver, a `graph`.

A folder `_<name>/` holds what serves one strategy alone.
"""

from importlib import import_module
from typing import Any, TypeVar

from reflective_agents.nodes.strategy import Strategy, StrategyBuilder
from reflective_agents.state.settings import check_name

G = TypeVar("G", bound=Strategy[Any, Any, Any, Any])


def builder_of(name: str) -> StrategyBuilder[Any, Any, Any, Any]:
    """Return the builder of a strategy, to compile it with a saver or a store.

    Raises:
        UnknownStrategy: if there is no such strategy.
    """
    builder: StrategyBuilder[Any, Any, Any, Any] = import_module(f"{__name__}.{check_name(name)}").builder
    return builder


def graph_of(name: str) -> Strategy[Any, Any, Any, Any]:
    """Return the compiled graph of a strategy.

    Raises:
        UnknownStrategy: if there is no such strategy.
    """
    graph: Strategy[Any, Any, Any, Any] = import_module(f"{__name__}.{check_name(name)}").graph
    return graph


def with_settings(graph: G, *, name: str | None = None, **settings: Any) -> G:
    """Return a compiled graph with settings of its own: a strategy as a node, a tool or an agent of another system.

    What a run is given as `context` wins over them, and they win over environment variables. Around it there may be a
    graph with a context of another kind.

    Args:
        graph: The compiled strategy.
        name: The name of the new graph. Default: the same.
        settings: Some of its settings.

    Raises:
        ValidationError: if the strategy has no such setting, or it cannot have this value.
    """
    return graph.with_settings(name, settings)
