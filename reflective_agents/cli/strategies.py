"""Loads the graph of a strategy when it is needed: the first one imports LangGraph, which takes seconds."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from reflective_agents.cli.threads import Graph, Saver


def load(name: str, saver: "Saver | None" = None, store: "BaseStore | None" = None) -> "Graph":
    """Return the graph of a strategy, with a saver for its threads and a store for what outlives them, if given."""
    from reflective_agents.graphs import builder_of

    graph: Graph = builder_of(name).compile(checkpointer=saver, store=store, name=name)
    return graph
