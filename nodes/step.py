"""What a node is given beside the state, and how a function becomes a node."""

import textwrap
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar
from uuid import uuid4

from langchain_core.runnables import RunnableLambda
from langgraph.config import get_config
from langgraph.runtime import get_runtime

import telemetry
from models.meter import Meter
from nodes.bridge import wait_for
from nodes.lessons import with_lessons
from state.context import Context
from state.errors import LimitReached, ModelFailed
from state.run import NOTHING_SPENT, Outcome, Status

telemetry.configure()  # before the first run begins, and not in an event loop

C = TypeVar("C", bound=Context, covariant=True)
Update = dict[str, Any]
SHORT = 200
"""Characters of a text that an event tells."""
LISTED = 5
"""Items of a list that an event tells."""


class Step(Generic[C]):
    """One execution of a node: its settings, the meter of the run, and the way to tell what happens.

    Attributes:
        context: The settings of the run; the defaults if the caller gave none.
        meter: What the run may still spend.
    """

    def __init__(self, context: C, state: Mapping[str, Any], write: Callable[[Any], None]) -> None:
        self.context = context
        self._before: Mapping[str, Any] = state.get("usage") or {}
        self.meter = Meter(context, state.get("usage") or NOTHING_SPENT)
        self._write = write
        self._events: int = state.get("events") or 0

    def emit(self, event: str, **data: Any) -> None:
        """Tell the `custom` stream what has just happened: a small numbered event of plain data, with the cost up to
        now. Long texts are cut."""
        self._events += 1
        usage = self.meter.usage
        cost = {"model_calls": usage["model_calls"], "total_tokens": usage["total_tokens"], "seconds": usage["seconds"]}
        telemetry.decision(event, **data, **cost)
        data = {name: _short(value) for name, value in data.items()}
        self._write({"seq": self._events, "event": event, **data, **cost})

    def cost(self) -> Update:
        """The update of the counters that lie in the state: those that have changed."""
        spent = {name: amount for name, amount in self.meter.usage.items() if self._before.get(name) != amount}
        return {"usage": spent, "events": self._events}


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(item) for item in value[:LISTED]]
    if not isinstance(value, str):
        return value
    text = " ".join(value.split())
    return text if len(text) <= SHORT else textwrap.shorten(text, SHORT, placeholder=" ...")


def stop(status: Status, reason: object) -> Update:
    """The update that ends a run."""
    return {"outcome": Outcome(status=status, reason=str(reason))}


def node(
    schema: type[C], *, begins: bool = False
) -> Callable[[Callable[[Any, Step[C]], Awaitable[Update]]], RunnableLambda[Any, Update]]:
    """Make `async (state, step) -> update` a node of a graph whose settings are `schema`.

    A limit or a model that cannot be brought to answer ends the run with an outcome instead of an exception. What
    was spent is written to the state with the update. Settings given at the beginning of the run hold when it is
    resumed without them; a node that `begins` a run takes its own.
    """

    def decorate(function: Callable[[Any, Step[C]], Awaitable[Update]]) -> RunnableLambda[Any, Update]:
        async def run(state: Mapping[str, Any]) -> Update:
            runtime = get_runtime(schema)
            context = runtime.context or schema.ambient()
            if begins:
                step = Step(context, {}, runtime.stream_writer)
            else:
                step = Step(context.resumed(state.get("settings") or {}), state, runtime.stream_writer)
            run_id = uuid4().hex if begins else state.get("run_id")
            with telemetry.step(function.__name__, run_id, state.get("strategy"), get_config()):
                try:
                    update = await function(state if begins else with_lessons(state), step)
                except LimitReached as reason:
                    update = stop("limit_reached", reason)
                except ModelFailed as reason:
                    update = stop("failed", reason)
            return {**step.cost(), **update, **({"run_id": run_id} if begins else {})}

        def run_blocking(state: Mapping[str, Any]) -> Update:
            return wait_for(run(state))

        run.__name__ = run_blocking.__name__ = function.__name__
        run.__doc__ = run_blocking.__doc__ = function.__doc__
        return RunnableLambda(run_blocking, afunc=run, name=function.__name__)

    return decorate
