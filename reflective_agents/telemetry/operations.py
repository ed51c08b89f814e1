"""What happens in a run: told as it ends, by one line of the log and one span, with the ids of run and thread."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from reflective_agents.telemetry import spans
from reflective_agents.telemetry.log import LOGGERS, Event, Kind, Plain

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Fact: TypeAlias = float | bool | Sized | None
"""What may be recorded: a number, a text, or a collection, of which only the size is kept."""
SHOWN = {
    *("agent", "critic_model", "fault", "id", "judge_model", "kind", "model", "namespace", "outcome"),
    *("parent_id", "provider", "schema", "search", "status", "strategy", "tool"),
}
"""Fields whose text is shown. Any other text may be a model's, a user's or a provider's: only its length is kept."""


@dataclass(frozen=True)
class _StepContext:
    """In which step of which run something happens."""

    run_id: str | None
    thread_id: str | None
    strategy: str | None
    step: str
    parent_run_id: str | None
    """The run whose step has started this one."""

    def fields(self) -> dict[str, str | None]:
        fields = {"run_id": self.run_id, "thread_id": self.thread_id}
        if self.parent_run_id:
            fields["parent_run_id"] = self.parent_run_id
        return {**fields, "strategy": self.strategy, "step": self.step}


_current_step: ContextVar[_StepContext | None] = ContextVar("step", default=None)
_listeners: list[Callable[[Event], None]] = []


def listen(listener: Callable[[Event], None]) -> None:
    """Show a function what runs decide, from now on: what the lines of `reflect.decision` hold, at any level of it."""
    _listeners.append(listener)


def current_strategy() -> str | None:
    """Return the strategy that is under way; None outside of a run, or of one that has just begun."""
    current = _current_step.get()
    return current.strategy if current else None


def _event(name: str, fields: Mapping[str, Fact]) -> Event:
    current = _current_step.get()
    of_step = current.fields() if current else {}
    return Event({"event": name, **of_step, **_plain(fields)})


def _plain(fields: Mapping[str, Fact]) -> dict[str, Plain]:
    """Keep numbers, and texts that are known to be names; of everything else keep the size."""
    plain: dict[str, Plain] = {}
    for name, value in fields.items():
        if value is None or isinstance(value, (bool, int, float)) or (name in SHOWN and isinstance(value, str)):
            plain[name] = value
        elif isinstance(value, str):
            plain[f"{name}_chars"] = len(value)
        else:
            plain[f"{name}_count"] = len(value)
    return plain


class Operation:
    """Something under way, as a `with` block: told when the block is left, with its seconds and its outcome.

    The outcome is "ok", "error" (with the class of the fault), "cancelled", or "paused" for a person, unless another
    one is noted.
    """

    def __init__(self, kind: Kind, event: str, title: str, fields: dict[str, Fact], parent: "Span | None") -> None:
        """Describe it.

        Args:
            kind: Which logger tells of it.
            event: What is done.
            title: Name of the span.
            fields: What is known of it before.
            parent: The span above it; None for the current one.
        """
        self._kind: Kind = kind
        self._event, self._title, self._fields, self._parent = event, title, fields, parent

    def note(self, **fields: Fact) -> None:
        """Add to what will be recorded: numbers, names of `SHOWN`, or texts of which only the length is kept."""
        self._fields.update(fields)

    def __enter__(self) -> Self:
        self._began = time.perf_counter()
        tracer = spans.tracer()
        self._scope = None
        if tracer:
            event = _event(self._event, self._fields)
            self._scope = spans.begin(tracer, self._title, event, self._parent, call=self._kind == "model")
            self._span = self._scope.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        seconds = round(time.perf_counter() - self._began, 4)
        event = _event(self._event, {"seconds": seconds, **_ending(fault), **self._fields})
        if self._scope:
            spans.note(self._span, event)
            self._scope.__exit__(None, None, None)  # an exception would be exported with its text
        LOGGERS[self._kind].log(_level(self._event), event)


class _Unwatched(Operation):
    """An operation that nobody wants to hear of."""

    def __init__(self) -> None: ...

    def note(self, **fields: Fact) -> None:
        """Ignore the fields."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


_UNWATCHED = _Unwatched()


def _ending(fault: BaseException | None) -> dict[str, Fact]:
    """Describe how a block has ended. The text of a fault may hold a key, its class cannot."""
    if fault is None:
        return {"outcome": "ok"}
    if isinstance(fault, GraphBubbleUp):
        return {"outcome": "paused"}
    if not isinstance(fault, Exception):
        return {"outcome": "cancelled"}
    ending: dict[str, Fact] = {"outcome": "error", "fault": type(fault).__name__}
    status = getattr(fault, "status_code", None)
    return {**ending, "http_status": status} if status else ending


def _level(event: str) -> int:
    return logging.DEBUG if event == "step" else logging.INFO


def _operation(kind: Kind, event: str, title: str, fields: dict[str, Fact], parent: "Span | None" = None) -> Operation:
    if LOGGERS[kind].isEnabledFor(_level(event)) or spans.tracer():
        return Operation(kind, event, title, fields, parent)
    return _UNWATCHED


@contextmanager
def step(name: str, run_id: str | None, strategy: str | None, config: RunnableConfig) -> Iterator[None]:
    """Enter a step of a run: everything that happens in it is logged with the ids of the run and its thread.

    Args:
        name: The node.
        run_id: Id of the run.
        strategy: The graph; None in a run's first step, which tells it by its event `begin`.
        config: What LangGraph gave the node.
    """
    above = _current_step.get()
    current = _StepContext(
        run_id,
        thread_id=(config.get("configurable") or {}).get("thread_id"),
        strategy=strategy,
        step=name,
        parent_run_id=above.run_id if above else None,
    )
    token = _current_step.set(current)
    try:
        run = spans.RUNS.span(getattr(config.get("callbacks"), "parent_run_id", None), current.fields())
        with _operation("decision", "step", f"step {name}", {}, run):
            yield
    finally:
        _current_step.reset(token)


def decision(event: str, **fields: Fact) -> None:
    """Tell what a strategy has just found or decided: one line of `reflect.decision`."""
    current, strategy = _current_step.get(), fields.get("strategy")
    if current and event == "begin" and isinstance(strategy, str):
        # The first step of a run learns its strategy from its own event `begin`.
        _current_step.set(replace(current, strategy=strategy))
    is_logged = LOGGERS["decision"].isEnabledFor(logging.INFO)
    if not (is_logged or _listeners):
        return
    found = _event(event, fields)
    for listener in _listeners:
        listener(found)
    if is_logged:
        LOGGERS["decision"].info(found)


def model_call(model: str, event: str = "chat", **fields: Fact) -> Operation:
    """Record a request to a model: one line of `reflect.model`.

    Args:
        model: Its name.
        event: "chat", or "embeddings".
        fields: What is known of it before, such as `n`; note `input_tokens` and `output_tokens` after it.
    """
    return _operation("model", event, f"{event} {model}", {"model": model, **fields})


def tool_call(tool: str, **fields: Fact) -> Operation:
    """Record a call of a tool, a web search or an action in an environment: one line of `reflect.tool`."""
    return _operation("tool", "execute_tool", f"execute_tool {tool}", {"tool": tool, **fields})


def memory_operation(event: str, **fields: Fact) -> Operation:
    """Record work on a memory, such as "retrieve", "store" or "forget": one line of `reflect.memory`."""
    return _operation("memory", event, f"memory {event}", fields)
