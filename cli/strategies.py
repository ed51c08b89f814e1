"""The strategies that the command knows: what they do, and how they are loaded when they are needed."""

import difflib
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from state.errors import UnknownStrategy

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore

    from state.context import Context


@dataclass(frozen=True)
class Strategy:
    """A strategy: its words for the user, and the name of its settings in `state.context`."""

    does: str
    use_when: str
    settings: str


STRATEGIES = {
    "reflection": Strategy(
        "Writes a draft, has it criticised, and rewrites it.",
        "the text matters more than the facts, or a person or checks shall judge it",
        "ReflectionContext",
    ),
    "reflexion": Strategy(
        "Answers, searches for what is missing, and revises.",
        "the answer needs evidence, at a modest price",
        "ReflexionContext",
    ),
    "lats": Strategy(
        "Searches a tree of steps for the best answer.",
        "a question is hard, first tries tend to fail, and more calls are worth it",
        "LatsContext",
    ),
    "chain_of_thought": Strategy(
        "Thinks step by step; of several samples the most frequent answer wins.",
        "a question needs reasoning but no search, or as the baseline of all others",
        "ChainOfThoughtContext",
    ),
    "react": Strategy(
        "Thinks, acts and observes in turns, with tools or in an environment.",
        "an answer needs several look-ups or calculations, each depending on the last",
        "ReactContext",
    ),
    "trials": Strategy(
        "Tries a task several times, and learns from each failure.",
        "success can be told: by tests, by a reward, or by a judge",
        "TrialsContext",
    ),
}


def known(name: str) -> Strategy:
    """The strategy of this name.

    Raises:
        UnknownStrategy: if there is none; the text names the ones there are, the closest first.
    """
    if name not in STRATEGIES:
        close = difflib.get_close_matches(name, STRATEGIES, n=1)
        hint = f"did you mean {close[0]}? There are" if close else "there are"
        raise UnknownStrategy(f"unknown strategy {name!r}: {hint} {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def settings_of(name: str) -> "type[Context]":
    """The settings of a strategy: the subclass of `Context`."""
    schema: type[Context] = getattr(importlib.import_module("state.context"), known(name).settings)
    return schema


def load(
    name: str, saver: "BaseCheckpointSaver[Any] | None" = None, store: "BaseStore | None" = None
) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """The graph of a strategy, with a memory if a saver is given. The first call imports LangGraph, for seconds."""
    builder = importlib.import_module(f"graphs.{name}").builder
    graph: CompiledStateGraph[Any, Any, Any, Any] = builder.compile(checkpointer=saver, store=store, name=name)
    return graph
