"""Loads the graph of a strategy when it is needed: the first one imports LangGraph, which takes seconds."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore


def load(
    name: str, saver: "BaseCheckpointSaver[Any] | None" = None, store: "BaseStore | None" = None
) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """Return the graph of a strategy, with a saver for its threads and a store for what outlives them, if given."""
    from reflective_agents.graphs import builder_of

    graph: CompiledStateGraph[Any, Any, Any, Any] = builder_of(name).compile(checkpointer=saver, store=store, name=name)
    return graph
