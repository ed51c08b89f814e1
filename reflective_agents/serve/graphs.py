"""The strategies as the servers run them.

The graph is the last to see what a request makes it do, and the only one to see all of it: the gate is here as well.

What a turn has spent stays spent when its thread goes back to an earlier checkpoint: a run that goes on from there is
charged with it. On Aegra a run that is taken over from a killed process goes on where it was. Aegra hands the input of
such a run in once more, as if it began. The checkpoints of a run carry its id, so the graph knows better: it would
otherwise start over, with the question twice in the conversation. A run whose database is away for a while waits for
it, and goes on in the same way; Aegra would call it failed.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateUpdate
from psycopg import OperationalError

from reflective_agents.graphs import graph_of
from reflective_agents.serve.engine import http_error
from reflective_agents.serve.gate import check_command, check_config, check_offered, for_others
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.context import Context
from reflective_agents.state.run import Input, Output, RunState
from reflective_agents.state.settings import strategy_names

_PAUSES = (1, 1, 2, 4, 8, 16, 32)
"""Seconds that a run waits for its database, before each new attempt."""
RunInput = Input | Command[str] | None


class Served(CompiledStateGraph[RunState, Context, Input, Output]):
    """A graph that does what its callers may make it do."""

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update the state as it is now, if the client may."""
        with _refusing():
            check_config(_named_by_callers(config))
            for update in (update for superstep in supersteps for update in superstep):
                check_command(update.values if isinstance(update.values, Command) else {"update": update.values})
            if for_others() and await self._went_back(config):
                raise Refused(
                    "a thread is changed where it is now: to go back, start a run at the checkpoint", status=403
                )
        return await super().abulk_update_state(config, supersteps)

    async def astream(
        self, input: RunInput, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Run the graph."""
        if config is not None and _is_root(config):
            with _refusing():
                check_offered(self.name)
                if isinstance(input, Command):
                    check_command(input)
                input = await self._charged(input, config)
        async for part in super().astream(input, config, **options):
            yield part

    async def _charged(self, given: RunInput, config: RunnableConfig) -> RunInput:
        """Return what a run begins with, with what its turn has spent after the checkpoint that it goes on from."""
        if not (for_others() and (given is None or isinstance(given, Command)) and await self._went_back(config)):
            return given
        base, latest = await self.aget_state(config), await self.aget_state(_now(config))
        if base.next == ("begin",):
            return given
        if base.metadata is None:
            raise Refused("there is no such checkpoint on this thread", status=404)
        if base.values.get("run_id") != latest.values.get("run_id"):
            raise Refused("that question was answered, and others since: ask a new one from there", status=403)
        spent: Command[str] = Command(update={"usage": latest.values["usage"]})
        return spent if given is None else _both(given, spent)

    async def _went_back(self, config: RunnableConfig) -> bool:
        """Tell whether a checkpoint is named that is not the thread's latest."""
        named = config.get("configurable", {}).get("checkpoint_id")
        if not named:
            return False
        latest = await self.aget_state(_now(config))
        return bool(latest.config.get("configurable", {}).get("checkpoint_id") != named)


class Resuming(Served):
    """A graph that resumes a run instead of beginning it twice."""

    async def astream(
        self, input: RunInput, config: RunnableConfig | None = None, **options: Any
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

    async def _rest(self, input: RunInput, config: RunnableConfig | None, **options: Any) -> AsyncIterator[Any]:
        if input is not None and config is not None and await self._has_begun(config):
            configurable = {
                name: value for name, value in config.get("configurable", {}).items() if name != "checkpoint_id"
            }
            input, config = None, {**config, "configurable": configurable}
        async for part in super().astream(input, config, **options):
            yield part

    async def _has_begun(self, config: RunnableConfig) -> bool:
        configurable, saver = config.get("configurable", {}), self.checkpointer
        run_id = configurable.get("run_id")
        if run_id is None or not isinstance(saver, BaseCheckpointSaver):
            return False
        latest: RunnableConfig = {"configurable": {"thread_id": configurable["thread_id"]}}
        saved = await saver.aget_tuple(latest)
        return saved is not None and saved.metadata.get("run_id") == run_id


def _both(given: Command[str], more: Command[str]) -> Command[str]:
    """Return a command with a further update, which comes last."""
    return Command(update=[*_pairs(given), *_pairs(more)], goto=given.goto, resume=given.resume)


def _pairs(given: Command[str]) -> list[tuple[str, Any]]:
    update = given.update or ()
    return [*update.items()] if isinstance(update, Mapping) else [*update]


def _named_by_callers(config: RunnableConfig) -> RunnableConfig:
    named = {name: value for name, value in config.get("configurable", {}).items() if not name.startswith("__")}
    return {"configurable": named}


def _now(config: RunnableConfig) -> RunnableConfig:
    """Return the configuration of a thread as it is now; None takes the place of what is bound to the graph."""
    return {"configurable": {**config.get("configurable", {}), "checkpoint_id": None}}


def _is_root(config: RunnableConfig) -> bool:
    """Tell whether a run is one that a request has started, and not one within another."""
    return "__pregel_task_id" not in config.get("configurable", {})


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        raise http_error(refusal) from refusal


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
