"""The strategies as the servers run them.

Only the graph sees everything that a request makes it do, so it checks that (`gate`) once more.

A run that goes on from an earlier checkpoint of its thread is charged with what the turn has spent after that.

On Aegra a run that is taken over from a killed process resumes at its last checkpoint. Aegra passes the input of such a
run again, as if it began, and the conversation would hold the question twice. The checkpoints of a run carry its id,
by which the graph sees that it has begun. A run that loses its database for a while waits for it, and resumes in the
same way; Aegra would let it fail.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command, StateSnapshot, StateUpdate
from psycopg import OperationalError

from reflective_agents import telemetry
from reflective_agents.graphs import graph_of
from reflective_agents.nodes.strategy import Strategy
from reflective_agents.serve.engine import http_error
from reflective_agents.serve.gate import check_command, check_config, check_offered, serves_others
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.run import Input, Output, RunState
from reflective_agents.state.settings import strategy_names
from reflective_agents.telemetry import spans

TRACE = "__trace"
"""Name in `config.configurable` of the span that a run belongs to, as headers: `admission` writes it."""
REPORT = "__report"
"""Name in `config.configurable` by which a run is made to report, and that of its report among its own events."""
REPORTED = "answer", "outcome", "structured_response", "usage"
"""What of a run's output is in its report."""
_PAUSES = (1, 1, 2, 4, 8, 16, 32)
"""Seconds that a run waits for its database, before each new attempt."""
RunInput = Input | Command[str] | None
Saver = BaseCheckpointSaver[Any]


class GuardedGraph(Strategy[RunState, Context, Input, Output]):
    """A graph that refuses what its callers may not make it do."""

    def get_context_jsonschema(self) -> JsonObject:
        """Return the schema of the settings, made once: Aegra asks for it at each run that is given some."""
        return _json_schema(self._schema)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update the state as it is now, if the client may."""
        with _as_http_error():
            check_config(_from_caller(config))
            for update in (update for superstep in supersteps for update in superstep):
                check_command(update.values if isinstance(update.values, Command) else {"update": update.values})
            if serves_others() and await self._went_back(config):
                raise Refused(
                    "a thread is changed where it is now: to go back, start a run at the checkpoint", status=403
                )
            try:
                return await super().abulk_update_state(config, supersteps)
            except InvalidUpdateError as error:
                # Aegra would answer 500, as if the server were at fault.
                raise Refused(f"the thread cannot be changed so: {error}") from error

    async def astream(
        self, input: RunInput, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Run the graph, if the client may."""
        if config is not None and _is_root(config):
            with _as_http_error():
                check_offered(self.name)
                if isinstance(input, Command):
                    check_command(input)
                input = await self._with_spent_usage(input, config)
        async for part in super().astream(input, config, **options):
            yield part

    async def _with_spent_usage(self, run_input: RunInput, config: RunnableConfig) -> RunInput:
        """Return the input of a run, with what its turn has spent after the checkpoint at which it starts."""
        if run_input is not None and not isinstance(run_input, Command):
            return run_input
        if not (serves_others() and await self._went_back(config)):
            return run_input
        base, latest = await self.aget_state(config), await self.aget_state(_at_latest(config))
        # A new turn begins there, with a count of its own.
        if base.next == ("begin",):
            return run_input
        if base.metadata is None:
            raise Refused("there is no such checkpoint on this thread", status=404)
        if base.values.get("run_id") != latest.values.get("run_id"):
            raise Refused("that question was answered, and others since: ask a new one from there", status=403)
        spent: Command[str] = Command(update={"usage": latest.values["usage"]})
        if run_input is None:
            return spent
        updates = [*_pairs(run_input), *_pairs(spent)]  # the last one counts
        return Command(update=updates, goto=run_input.goto, resume=run_input.resume)

    async def _went_back(self, config: RunnableConfig) -> bool:
        """Tell whether a checkpoint is named that is not the thread's latest."""
        checkpoint_id = config.get("configurable", {}).get("checkpoint_id")
        if not checkpoint_id:
            return False
        latest = await self.aget_state(_at_latest(config))
        return bool(latest.config.get("configurable", {}).get("checkpoint_id") != checkpoint_id)


class ResumableGraph(GuardedGraph):
    """A graph that resumes a run instead of beginning it twice."""

    async def aget_state_history(
        self, config: RunnableConfig, *, metadata: JsonObject | None = None, **options: Any
    ) -> AsyncIterator[StateSnapshot]:
        """Return the states of a thread; Aegra gives the filter a name that LangGraph does not know."""
        # `auth` adds the owner, whom threads have and checkpoints do not.
        options["filter"] = {name: value for name, value in (metadata or {}).items() if name != "owner"}
        async for state in super().aget_state_history(config, **options):
            yield state

    async def astream(
        self, input: RunInput, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Run the graph, or the rest of it."""
        run = self._until_ended
        if config is not None and _is_root(config):
            spans.go_on(config.get("configurable", {}).get(TRACE) or {})
            if config.get("configurable", {}).get(REPORT) and not options.get("subgraphs"):
                run = self._reporting
        try:
            async for part in run(input, config, **options):
                yield part
        except (Exception, asyncio.CancelledError) as fault:
            telemetry.decision("broken_off", strategy=self.name, fault=type(fault).__name__)
            raise

    async def _reporting(self, input: RunInput, config: RunnableConfig | None, **options: Any) -> AsyncIterator[Any]:
        """Run the graph, and end with a report, so that nobody has to read the thread for it.

        Nothing else is told of values: Aegra wants to be told of each step, and passes none of that on.
        """
        modes = {*options.get("stream_mode", ()), "values"} - {"debug"}
        values: JsonObject = {}
        options |= {"stream_mode": [*modes], "output_keys": [name for name in REPORTED if name in self.channels]}
        async for mode, part in self._until_ended(input, config, **options):
            if mode == "values":
                values = part
            else:
                yield mode, part
        if values:
            yield "custom", {REPORT: values}

    async def _until_ended(self, input: RunInput, config: RunnableConfig | None, **options: Any) -> AsyncIterator[Any]:
        """Run the graph, or the rest of it, also while its database is away for a while."""
        # What was done before the last checkpoint is not done again: see `_run_or_resume`.
        for pause in _PAUSES:
            try:
                async for part in self._run_or_resume(input, config, **options):
                    yield part
                return
            except OperationalError:
                await asyncio.sleep(pause)
        async for part in self._run_or_resume(input, config, **options):
            yield part

    async def _run_or_resume(
        self, input: RunInput, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[Any]:
        graph, saver = self, self.checkpointer
        configurable = (config or {}).get("configurable", {})
        run_id = configurable.get("run_id")
        if input is not None and run_id is not None and isinstance(saver, BaseCheckpointSaver):
            latest = await saver.aget_tuple({"configurable": {"thread_id": configurable["thread_id"]}})
            graph = copy.copy(self)
            graph.checkpointer = _knowing(saver, latest)
            if latest is not None and latest.metadata.get("run_id") == run_id:
                # It has begun. Without the checkpoint that it has begun at: it goes on from its own latest one.
                own = {name: value for name, value in configurable.items() if name != "checkpoint_id"}
                input, config = None, {**(config or {}), "configurable": own}
        async for part in super(ResumableGraph, graph).astream(input, config, **options):
            yield part


def _knowing(saver: Saver, latest: CheckpointTuple | None) -> Saver:
    """Return a copy of a saver that does not read the latest checkpoint of a thread, which was just read, once more."""
    knowing = copy.copy(saver)

    async def first(config: RunnableConfig) -> CheckpointTuple | None:
        knowing.aget_tuple = saver.aget_tuple  # type: ignore[method-assign]
        configurable = config.get("configurable", {})
        is_latest = not configurable.get("checkpoint_id") and not configurable.get("checkpoint_ns")
        return latest if is_latest else await saver.aget_tuple(config)

    knowing.aget_tuple = first  # type: ignore[method-assign]
    return knowing


@cache
def _json_schema(settings: type[Context]) -> JsonObject:
    return settings.model_json_schema()


def _pairs(command: Command[str]) -> list[tuple[str, Any]]:
    update = command.update or ()
    return [*update.items()] if isinstance(update, Mapping) else [*update]


def _from_caller(config: RunnableConfig) -> RunnableConfig:
    """Return a configuration without what LangGraph adds itself."""
    configurable = {name: value for name, value in config.get("configurable", {}).items() if not name.startswith("__")}
    return {"configurable": configurable}


def _at_latest(config: RunnableConfig) -> RunnableConfig:
    """Return the configuration of the latest checkpoint; the None overrides a checkpoint bound to the graph."""
    return {"configurable": {**config.get("configurable", {}), "checkpoint_id": None}}


def _is_root(config: RunnableConfig) -> bool:
    """Tell whether a request has started the run, not another run."""
    return "__pregel_task_id" not in config.get("configurable", {})


@contextmanager
def _as_http_error() -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        raise http_error(refusal) from refusal


def guard_graphs() -> None:
    """Make the graphs that `langgraph dev` loads check what clients write."""
    for name in strategy_names():
        # In place: `langgraph dev` takes the graphs from where langgraph.json names them.
        graph_of(name).__class__ = GuardedGraph


def __getattr__(name: str) -> ResumableGraph:
    """Return the strategy of this name, for Aegra."""
    if name.startswith("_"):
        raise AttributeError(name)
    # A copy: the graph itself may work within other strategies, which resume it themselves.
    graph = copy.copy(graph_of(name))
    graph.__class__ = ResumableGraph
    return graph  # type: ignore[return-value]
