"""OpenTelemetry spans: run > step > model call, tool call or memory operation.

Spans go to the tracer provider of the application; if it has none, to the exporters that OTEL_TRACES_EXPORTER or
OTEL_EXPORTER_OTLP_ENDPOINT ask for. Without either, and without the library, there are none.
"""

import os
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from reflective_agents.state.json_types import JsonObject
from reflective_agents.telemetry.log import Plain

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer
    from opentelemetry.trace import TracerProvider as Provider

SCOPE = "reflective-agents"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_ATTRIBUTES = {
    "event": "gen_ai.operation.name",
    "fault": "error.type",
    "input_tokens": "gen_ai.usage.input_tokens",
    "model": "gen_ai.request.model",
    "n": "gen_ai.request.choice.count",
    "output_tokens": "gen_ai.usage.output_tokens",
    "provider": "gen_ai.provider.name",
    "strategy": "gen_ai.agent.name",
    "thread_id": "gen_ai.conversation.id",
    "tool": "gen_ai.tool.name",
}
"""The names that the semantic conventions have for what the log tells under others."""

_settings: dict[str, str] = {}
_own_provider: "TracerProvider | None" = None


def configure() -> None:
    """Export spans as the environment asks, from now on; what an earlier call has begun is flushed and closed."""
    global _settings, _own_provider
    settings = {name: value for name, value in os.environ.items() if name.startswith("OTEL_")}
    # Nothing has changed: each import of the nodes asks, and exporters are expensive to begin.
    if settings == _settings:
        return
    previous, _own_provider, _settings = _own_provider, None, settings
    if previous is not None:
        previous.shutdown()
    names = _exporters(settings)
    if names:
        _own_provider = _provider(names)


def _exporters(settings: Mapping[str, str]) -> list[str]:
    """Return the names of the exporters asked for."""
    if settings.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    default = "otlp" if any(settings.get(name) for name in _ENDPOINTS) else "none"
    names = [name.strip() for name in (settings.get("OTEL_TRACES_EXPORTER") or default).split(",")]
    protocol = settings.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or settings.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    otlp = _PROTOCOLS.get(protocol or "http/protobuf", f"otlp over {protocol}")
    exporters = [name for name in names if name not in ("", "none")]
    return [otlp if name == "otlp" else name for name in exporters]


def _provider(names: list[str]) -> "TracerProvider | None":
    try:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:  # the variables may be meant for other programs
        return None
    provider = TracerProvider()
    for name in names:
        points = entry_points(group="opentelemetry_traces_exporter", name=name)
        if not points:
            warnings.warn(f"no spans are exported: the OpenTelemetry exporter {name} is not installed", stacklevel=2)
        for point in points:
            provider.add_span_processor(BatchSpanProcessor(point.load()()))
    return provider


def tracer() -> "Tracer | None":
    """Return where spans go; None if nobody wants any."""
    # An application that has not loaded it has no provider, and loading it takes time.
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    # A proxy stands there as long as the application has set none.
    provider = trace.get_tracer_provider()
    return _tracer_of(_own_provider if isinstance(provider, trace.ProxyTracerProvider) else provider)


def own_provider() -> "TracerProvider | None":
    """Return what exports spans as the environment asks; None if it asks for none."""
    return _own_provider


def carrier() -> dict[str, str]:
    """Return the current span as headers, by which another process goes on with its trace: see `go_on`."""
    headers = dict[str, str]()
    if tracer():
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(headers)
    return headers


def go_on(headers: Mapping[str, str]) -> None:
    """Let what begins in this context from now on belong to the span that `carrier` has returned as headers."""
    if headers and tracer():
        from opentelemetry.context import attach
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        attach(TraceContextTextMapPropagator().extract(headers))


@lru_cache(maxsize=1)
def _tracer_of(provider: "Provider | None") -> "Tracer | None":
    if provider is None:
        return None
    from opentelemetry.trace import NoOpTracer

    tracer = provider.get_tracer(SCOPE)
    return None if isinstance(tracer, NoOpTracer) else tracer


def begin(
    tracer: "Tracer", name: str, fields: Mapping[str, Plain], parent: "Span | None", *, call: bool
) -> "AbstractContextManager[Span]":
    """Start a span that is current until the result is left. No exception may reach it: its text would be exported.

    Args:
        tracer: Where it goes.
        name: What it is called.
        fields: What is known at its beginning.
        parent: The span above it; None for the current one.
        call: Whether it is a call of another service.
    """
    from opentelemetry import trace

    return tracer.start_as_current_span(
        name,
        context=trace.set_span_in_context(parent) if parent else None,
        kind=trace.SpanKind.CLIENT if call else trace.SpanKind.INTERNAL,
        attributes=attributes(fields),
    )


def note(span: "Span", fields: Mapping[str, Plain]) -> None:
    """Add to a span what is known at its end; an outcome "error" makes it one of a failure."""
    span.set_attributes(attributes(fields))
    if fields.get("outcome") == "error":
        _fail(span, str(fields.get("fault", "")))


def attributes(fields: Mapping[str, Plain]) -> dict[str, str | float | bool]:
    """Name fields as in the semantic conventions, or after this project."""
    named: dict[str, str | float | bool] = {}
    for name, value in fields.items():
        if value is not None and name != "seconds":
            named[_ATTRIBUTES.get(name, f"reflect.{name}")] = value
    return named


def _fail(span: "Span", fault: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_status(Status(StatusCode.ERROR, fault))


@dataclass
class _Chain:
    """Something that LangChain runs: `graph` is the run of a graph that it belongs to as a node or within one."""

    name: str
    graph: "_Chain | None"
    context: "Context"
    began: int
    span: "Span | None" = None


class Runs(BaseCallbackHandler):
    """Gives each run of a graph a span, once a step in it asks for one.

    A run begins before its first step and ends after its last, and only callbacks are told of either. The span is
    never made current here: callbacks may run in another context than what they are told of.
    """

    run_inline = True

    def __init__(self) -> None:
        self._chains: dict[UUID, _Chain] = {}

    @property
    def ignore_llm(self) -> bool:
        """Completions are not watched."""
        return True

    @property
    def ignore_chat_model(self) -> bool:
        """Chats are not watched."""
        return True

    @property
    def ignore_agent(self) -> bool:
        """Agents are not watched."""
        return True

    @property
    def ignore_retriever(self) -> bool:
        """Retrievers are not watched."""
        return True

    def on_chain_start(
        self,
        serialized: JsonObject,
        inputs: JsonObject,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note when a chain has begun, and in which graph it is a node."""
        from opentelemetry.context import get_current

        parent = self._chains.get(parent_run_id) if parent_run_id else None
        # LangGraph tags the nodes that it runs; the chain above such a node is its graph.
        is_node = any(tag.startswith("graph:step:") for tag in tags or [])
        graph = parent if is_node or parent is None else parent.graph
        self._chains[run_id] = _Chain(kwargs.get("name") or "", graph, get_current(), time.time_ns())

    def on_chain_end(self, outputs: JsonObject, *, run_id: UUID, **kwargs: Any) -> None:
        """End the span of a run."""
        chain = self._chains.pop(run_id, None)
        if chain and chain.span:
            chain.span.end()

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """End the span of a run that raised."""
        chain = self._chains.get(run_id)
        if chain and chain.span:
            chain.span.set_attribute("error.type", type(error).__name__)
            _fail(chain.span, type(error).__name__)
        self.on_chain_end({}, run_id=run_id)

    def span(self, run_id: UUID | None, fields: Mapping[str, Plain]) -> "Span | None":
        """Return the span of the graph in which a step runs.

        Args:
            run_id: LangChain's id of what runs the step.
            fields: What is known of the run.
        """
        chain = self._chains.get(run_id) if run_id else None
        to = tracer()
        if chain is None or chain.graph is None or to is None:
            return None
        return _span_of(chain.graph, to, fields)


def _span_of(graph: _Chain, to: "Tracer", fields: Mapping[str, Plain]) -> "Span":
    from opentelemetry.trace import get_current_span, set_span_in_context

    if graph.span is None:
        context, parent = graph.context, graph.graph
        if parent and get_current_span(context) is get_current_span(parent.context):  # no step lies between them
            context = set_span_in_context(_span_of(parent, to, {}))
        named = attributes({**fields, "event": "invoke_agent", "strategy": graph.name, "step": None})
        graph.span = to.start_span(
            f"invoke_agent {graph.name}", context=context, start_time=graph.began, attributes=named
        )
    return graph.span


RUNS = Runs()


class _WhenWanted:
    """Stands where LangChain looks for a context variable with a handler: there is one while spans are wanted."""

    def get(self) -> Runs | None:
        return RUNS if tracer() else None


register_configure_hook(cast("ContextVar[Runs | None]", _WhenWanted()), inheritable=True)
