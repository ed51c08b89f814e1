"""The strategies as the servers run them.

What a run has spent is written by the run alone: a client that could write it would have no limits. On Aegra a run that
is taken over from a killed process goes on where it was. Aegra hands the input of such a run in once more, as if it
began. The checkpoints of a run carry its id, so the graph knows better: it would otherwise start over, with the
question twice in the conversation. A run whose database is away for a while waits for it, and goes on in the same way;
Aegra would call it failed.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateUpdate
from psycopg import OperationalError

from reflective_agents.graphs import graph_of
from reflective_agents.serve.engine import forbidden
from reflective_agents.serve.keys import keys_are_asked_for
from reflective_agents.state.context import Context
from reflective_agents.state.run import Input, Output, RunState
from reflective_agents.state.settings import strategy_names

WRITTEN_BY_RUNS = {"usage", "run_id"}
"""Channels that hold what a run may still spend."""
_PAUSES = (1, 1, 2, 4, 8, 16, 32)
"""Seconds that a run waits for its database, before each new attempt."""


class Served(CompiledStateGraph[RunState, Context, Input, Output]):
    """A graph whose clients write no channel that is the run's."""

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update the state, if the client may."""
        for update in (update for superstep in supersteps for update in superstep):
            _allow(update.values)
        return await super().abulk_update_state(config, supersteps)

    async def astream(
        self, input: Input | Command[str] | None, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Run the graph."""
        if isinstance(input, Command):
            _allow(input.update)
        async for part in super().astream(input, config, **options):
            yield part


class Resuming(Served):
    """A graph that resumes a run instead of beginning it twice."""

    async def astream(
        self, input: Input | Command[str] | None, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Run the graph, or the rest of it."""
        for pause in _PAUSES:
            try:
                async for part in self._rest(input, config, **options):
                    yield part
                return
            except OperationalError:
                await asyncio.sleep(pause)
        async for part in self._rest(input, config, **options):
            yield part

    async def _rest(
        self, input: Input | Command[str] | None, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[Any]:
        if input is not None and config is not None and await self._has_begun(config):
            place = {name: value for name, value in config.get("configurable", {}).items() if name != "checkpoint_id"}
            input, config = None, {**config, "configurable": place}
        async for part in super().astream(input, config, **options):
            yield part

    async def _has_begun(self, config: RunnableConfig) -> bool:
        place, saver = config.get("configurable", {}), self.checkpointer
        run_id = place.get("run_id")
        if run_id is None or not isinstance(saver, BaseCheckpointSaver):
            return False
        latest: RunnableConfig = {"configurable": {"thread_id": place["thread_id"]}}
        saved = await saver.aget_tuple(latest)
        return saved is not None and saved.metadata.get("run_id") == run_id


def forbidden_write(values: Any) -> str | None:
    """Return why a client must not write these values, if he must not; the operator may, without keys."""
    written = dict(values) if isinstance(values, (dict, list, tuple)) else {}
    taken = sorted(WRITTEN_BY_RUNS & written.keys()) if keys_are_asked_for() else []
    return f"{taken[0]} is written by the run alone" if taken else None


def _allow(values: Any) -> None:
    if reason := forbidden_write(values):
        raise forbidden(reason)


def guard() -> None:
    """Make the graphs that `langgraph dev` loads check what clients write."""
    for name in strategy_names():
        graph_of(name).__class__ = Served


def __getattr__(name: str) -> Resuming:
    """Return the strategy of this name, for Aegra."""
    if name.startswith("_"):
        raise AttributeError(name)
    graph = copy.copy(graph_of(name))
    graph.__class__ = Resuming
    return graph  # type: ignore[return-value]
