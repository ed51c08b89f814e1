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
    """A strategy: its words for the user, and its settings with the module they stand in."""

    does: str
    use_when: str
    settings: str
    module: str = "state.context"


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
        "state.searching",
    ),
    "tree_of_thoughts": Strategy(
        "Plans, compares the plans, and goes on from the best, level by level or depth first.",
        "an answer needs a plan, or a puzzle has many steps of which few can be right",
        "TreeOfThoughtsContext",
        "state.searching",
    ),
    "rap": Strategy(
        "Plans with the model as its own model of the world, and weighs the answers of all paths.",
        "a question falls into smaller ones, or actions have to be planned before any is carried out",
        "RapContext",
        "state.searching",
    ),
    "ab_mcts": Strategy(
        "Searches whole answers, wider or deeper as it pays; among several models too.",
        "answers can be criticised and improved, and it is not known which of both helps more",
        "AbMctsContext",
        "state.searching",
    ),
    "best_of_n": Strategy(
        "Samples several trajectories, each to its end; a judge takes the best.",
        "a plain baseline is wanted that every search has to beat",
        "BestOfNContext",
        "state.searching",
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
    "plan": Strategy(
        "Plans sub-goals, has workers reach them at once, and replans what fails.",
        "a request has several parts, each of which needs work of its own",
        "PlanContext",
        "state.cooperation",
    ),
    "team": Strategy(
        "Lets a supervisor lead members with roles, or solvers debate.",
        "a request needs several kinds of work, or a second opinion",
        "TeamContext",
        "state.cooperation",
    ),
    "town": Strategy(
        "Lets a small town of agents live for a day, each with a memory of its own.",
        "you want to see how agents plan, meet, talk and pass on news",
        "TownContext",
        "state.town",
    ),
    "memory": Strategy(
        "Talks with a user, remembers it, and answers from what it remembers.",
        "one user comes back, in other threads and on other days",
        "MemoryContext",
        "state.remembering",
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
    strategy = known(name)
    schema: type[Context] = getattr(importlib.import_module(strategy.module), strategy.settings)
    return schema


def load(
    name: str, saver: "BaseCheckpointSaver[Any] | None" = None, store: "BaseStore | None" = None
) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """The graph of a strategy, with a memory if a saver is given. The first call imports LangGraph, for seconds."""
    builder = importlib.import_module(f"graphs.{name}").builder
    graph: CompiledStateGraph[Any, Any, Any, Any] = builder.compile(checkpointer=saver, store=store, name=name)
    return graph
