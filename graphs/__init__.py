"""The strategies: `graphs.<name>` has a `builder` and, compiled without a saver, a `graph`.

A folder `_<name>/` holds what serves one strategy alone.
"""

from importlib import import_module
from typing import Any

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from reflective_agents.state.settings import check_name


def builder_of(name: str) -> StateGraph[Any, Any]:
    """Return the builder of a strategy, to compile it with a saver or a store.

    Raises:
        UnknownStrategy: if there is no such strategy.
    """
    builder: StateGraph[Any, Any] = import_module(f"{__name__}.{check_name(name)}").builder
    return builder


def graph_of(name: str) -> CompiledStateGraph[Any, Any]:
    """Return the compiled graph of a strategy.

    Raises:
        UnknownStrategy: if there is no such strategy.
    """
    graph: CompiledStateGraph[Any, Any] = import_module(f"{__name__}.{check_name(name)}").graph
    return graph
