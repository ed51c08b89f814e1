"""A strategy as a compiled graph that fits into other systems: with settings of its own, and as a tool."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.graph import Graph
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer, StateSnapshot
from langgraph.typing import ContextT, InputT, OutputT, StateT
from pydantic import BaseModel

from reflective_agents.nodes.damage import FAILURES, damage, is_the_savers, unreadable
from reflective_agents.state.context import Context, settings_over
from reflective_agents.state.errors import Misuse, WrongThread
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.versions import upgraded

C = TypeVar("C", bound=Context)
AGENT_NAME = "lc_agent_name"
"""Where the metadata of a run name its graph, for LangChain's streams of sub-agents too."""
Employed = Mapping[str, Mapping[str, Pregel[Any, Any, Any, Any]]]
"""Graphs that work within nodes: by the name of the node, and their own."""


class Strategy(CompiledStateGraph[StateT, ContextT, InputT, OutputT]):
    """A compiled strategy."""

    settings: Mapping[str, Any] = {}
    """The graph's own settings, which hold where a run is given none."""

    def with_settings(self, name: str | None, settings: Mapping[str, Any]) -> Self:
        """Return a copy with settings of its own; `with_settings` of `reflective_agents.graphs` is this as a function.

        Those that it had before hold beside them; of further parameters of requests each name is a setting of its own.

        Raises:
            ValidationError: if the strategy has no such setting, or it cannot have this value.
        """
        bound = copy.copy(self)
        bound.name = name or self.name
        self._schema.model_validate({**self.settings, **settings})
        bound.settings = settings_over(self.settings, settings)
        return bound

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        """Return a copy with other attributes, as LangGraph's servers make it. LangGraph's own forgets settings."""
        copied = super().copy(update)
        copied.settings = self.settings
        return copied

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Return the strategy as a tool with one argument, `question`.

        Its content is the answer, or why there is none; its artifact is all else that the run returns.

        Args:
            args_schema: Other arguments: those of the graph's input. The tool is then LangChain's, which takes and
                returns what the graph does.
            name: Name of the tool. Default: that of the graph.
            description: What the model is told. Default: what the strategy does, and when to use it.
            arg_types: As `args_schema`.
        """
        described = description or f"{self._schema.does} Use it when {self._schema.use_when}."
        if args_schema or arg_types:
            return super().as_tool(args_schema, name=name or self.name, description=described, arg_types=arg_types)

        return StructuredTool.from_function(
            self._ask, self._aask, name or self.name, described, response_format="content_and_artifact"
        )

    def _ask(self, question: str, config: RunnableConfig) -> tuple[str, JsonMapping]:
        return _content_and_artifact(self.invoke(_as_input(question), config))

    async def _aask(self, question: str, config: RunnableConfig) -> tuple[str, JsonMapping]:
        return _content_and_artifact(await self.ainvoke(_as_input(question), config))

    if not TYPE_CHECKING:  # so that type checkers see LangGraph's signatures

        def stream(self, input, config=None, *, context=None, **options):
            """Stream a run, with the graph's own settings below those that are given."""
            self._check_options(options)
            return self._stream(input, self._named(config), context=self._context(context, config), **options)

        def astream(self, input, config=None, *, context=None, **options):
            """Stream a run, with the graph's own settings below those that are given."""
            self._check_options(options)
            return self._astream(input, self._named(config), context=self._context(context, config), **options)

        def _stream(self, input, config, **options):
            try:
                yield from super().stream(input, config, **options)
            except FAILURES as error:
                if not isinstance(error, Misuse) and self._is_stored(config):
                    with _damage_after(error):
                        found = self._damage(self.get_state(_last(config)), error)
                    if found:
                        raise found from error
                raise

        async def _astream(self, input, config, **options):
            try:
                async with aclosing(super().astream(input, config, **options)) as parts:
                    async for part in parts:
                        yield part
            except FAILURES as error:
                if not isinstance(error, Misuse) and self._is_stored(config):
                    with _damage_after(error):
                        found = self._damage(await self.aget_state(_last(config)), error)
                    if found:
                        raise found from error
                raise

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the drawing of the graph; with `xray`, with the graphs that its nodes let work by its settings."""
        drawn = super().get_graph(config, xray=xray)
        employs = getattr(self.builder, "employs", None)
        if xray and employs:
            _draw_employed(drawn, employs(self._schema.merged(self.settings, {})))
        return drawn

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Do the same in asynchronous code."""
        return self.get_graph(config, xray=xray)

    @property
    def _schema(self) -> type[Context]:
        schema = self.context_schema
        assert isinstance(schema, type)
        assert issubclass(schema, Context)
        return schema

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse settings as arguments, as LangChain's `bind` makes them of its own: LangGraph drops them."""
        if settings := sorted(options.keys() & self._schema.model_fields):
            raise Misuse(
                f"{', '.join(settings)} would have no effect as arguments: give settings as context={{...}}, or bind "
                "them with with_settings"
            )

    def _is_stored(self, config: RunnableConfig) -> bool:
        """Tell whether a run's thread is stored, and by this graph rather than by one around it."""
        thread = ensure_config(config).get("configurable", {}).get("thread_id")
        return isinstance(self.checkpointer, BaseCheckpointSaver) and thread is not None

    def _damage(self, stored: StateSnapshot, error: Exception) -> WrongThread | None:
        return damage(self.builder.state_schema, upgraded(stored.values), error)

    def _named(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run, which names the graph as LangChain's agents name themselves.

        Another name may be bound to it, as deepagents does; without one, the name of a graph around is not its own.
        """
        bound = (self.config or {}).get("metadata") or {}
        name = bound.get(AGENT_NAME) or (None if self.name == Pregel.name else self.name)
        given = config or {}
        return {**given, "metadata": {**(given.get("metadata") or {}), AGENT_NAME: name}}

    def _context(self, context: object, config: RunnableConfig | None) -> object:
        """Return the settings of a run: those that it is given, or finds around it, over the graph's own.

        Raises:
            Misuse: if it is given the settings of something else.
        """
        schema = self._schema
        if context is not None and not isinstance(context, schema | dict):
            raise Misuse(
                f"the settings are a {type(context).__name__}, where {schema.__name__} is needed: give it or a plain "
                "dict as context"
            )
        if not self.settings:
            return context
        found = own_settings(_around(config), schema) if context is None else context
        chosen = found.chosen() if isinstance(found, Context) else found or {}
        merged = schema.merged(self.settings, chosen)
        return merged.handed_on() if isinstance(found, Context) and found.is_handed_on else merged


class StrategyBuilder(StateGraph[StateT, ContextT, InputT, OutputT]):
    """A `StateGraph` that compiles to a `Strategy`.

    Attributes:
        employs: Returns what other graphs its nodes let work, by the settings: these choose it, so LangGraph cannot see
            it.
    """

    employs: Callable[[Any], Employed] | None = None

    def compile(self, checkpointer: Checkpointer = None, **options: Any) -> Strategy[StateT, ContextT, InputT, OutputT]:
        """Compile the graph, as `StateGraph.compile` does, which takes the same options."""
        compiled: Any = super().compile(checkpointer, **options)
        compiled.__class__ = Strategy  # LangGraph chooses the class itself
        strategy: Strategy[StateT, ContextT, InputT, OutputT] = compiled
        return strategy


def own_settings(context: object, schema: type[C]) -> C | None:
    """Return what a graph around gives a strategy: its settings, or a plain dict that holds nothing else.

    None if there is nothing, or it is meant for others: a parent's own class, or a dict with other keys.
    """
    if isinstance(context, schema):
        return context
    if isinstance(context, Mapping) and context.keys() <= {*schema.model_fields, *schema.renamed}:
        return schema(**context)
    return None


def _draw_employed(drawn: Graph, employed: Employed) -> None:
    """Draw graphs in the place of the nodes in which they work."""
    for node, graphs in employed.items():
        outside = drawn.nodes[node]
        around = [edge for edge in drawn.edges if node in (edge.source, edge.target)]
        for name, graph in graphs.items():
            inner = graph.get_graph()
            inner.trim_first_node()
            inner.trim_last_node()
            first, last = drawn.extend(inner, prefix=f"{node}_{name}")
            assert first is not None
            assert last is not None
            for edge in around:
                source = last.id if edge.source == node else edge.source
                target = first.id if edge.target == node else edge.target
                drawn.edges.append(edge.copy(source=source, target=target))
        if graphs:
            drawn.remove_node(outside)


def _last(config: RunnableConfig) -> RunnableConfig:
    """Return the config of the last state of a run's thread."""
    given = ensure_config(config).get("configurable", {})
    return {"configurable": {name: given[name] for name in ("thread_id", "checkpoint_ns") if name in given}}


@contextmanager
def _damage_after(failure: Exception) -> Iterator[None]:
    """Say that a thread on which a run has failed cannot be read, if the body cannot read it.

    Raises:
        WrongThread: if so.
    """
    try:
        yield
    except FAILURES as error:
        if is_the_savers(error):
            raise failure from None
        raise unreadable(error) from failure


def _as_input(question: str) -> Any:
    return {"messages": [HumanMessage(question)]}


def _content_and_artifact(result: JsonMapping) -> tuple[str, JsonMapping]:
    if result["outcome"] is None:
        raise Misuse("the run pauses for a person or a client: use the tool in an agent that has a checkpointer")
    content = result["answer"]
    if content is None:
        content = f"There is no answer: {result['outcome']['reason']}"
    artefact = {name: value for name, value in result.items() if name != "messages"}
    return content, artefact


def _around(config: RunnableConfig | None) -> object:
    """Return the context of the graph in which this one is a node, a tool or an agent; None if there is none."""
    for value in ensure_config(config).get("configurable", {}).values():
        if isinstance(value, Runtime):
            return value.context
    return None
