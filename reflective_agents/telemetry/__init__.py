"""What runs tell besides their results: log lines and OpenTelemetry spans of decisions, model calls, tool calls and
memory operations. Off unless asked for, and never the text of a prompt, an answer or an exception.

    with telemetry.memory_operation("retrieve", namespace="lessons") as operation:
        found = await store.asearch(...)
        operation.note(found=len(found))

gives one line of the logger `reflect.memory` and one span, with the seconds it took and how it ended.
"""

from reflective_agents.telemetry import log, spans
from reflective_agents.telemetry.operations import (
    Operation,
    current_strategy,
    decision,
    listen,
    memory_operation,
    model_call,
    step,
    tool_call,
)

__all__ = [
    "Operation",
    "configure",
    "current_strategy",
    "decision",
    "listen",
    "memory_operation",
    "model_call",
    "step",
    "tool_call",
]


def configure() -> None:
    """Read REFLECT_LOG, REFLECT_LOG_LEVEL and the variables of OpenTelemetry, and begin or end what they ask for.

    Happens by itself when the nodes are imported; call it where the variables are set later than that. What an
    earlier call has begun is flushed and closed if it is no longer asked for.

    Raises:
        Misuse: if REFLECT_LOG names a file that cannot be written, or REFLECT_LOG_LEVEL no level.
    """
    log.configure()
    spans.configure()
