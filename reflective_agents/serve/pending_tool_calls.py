"""Calls of the client's tools that runs wait for, and the ids by which their results come back.

An id contains that of the thread, so that a client which only sends OpenAI's messages can resume it.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from langgraph_sdk.schema import ThreadState

from reflective_agents.serve.refusals import Refused
from reflective_agents.state.json_types import JsonMapping, JsonObject

_START = "call_"
_THREAD = 22
"""Characters of the thread in an id; those of the call follow."""


class PendingToolCall(NamedTuple):
    """A call of a client's tool that a run waits for: the interrupt that asks for it, its id there, and the call."""

    interrupt: str
    key: str
    name: str
    args: JsonMapping


def pending_tool_calls(state: ThreadState) -> list[PendingToolCall]:
    """Return the calls that a thread waits for; none if it waits for something else, or for nothing."""
    interrupts = [interrupt for task in state.get("tasks") or [] for interrupt in task["interrupts"]]
    return [
        PendingToolCall(interrupt["id"], call["id"], call["name"], call["args"])
        for interrupt in interrupts
        if isinstance(value := interrupt.get("value"), Mapping)
        for call in value.get("tool_calls", [])
    ]


def id_of(thread_id: str, call: PendingToolCall) -> str:
    """Return the id of a call as the client sees it: of 39 characters, as OpenAI allows 40."""
    # With the interrupt: models may give two calls of a run the same id.
    call_id = hashlib.sha256(f"{call.interrupt} {call.key}".encode()).hexdigest()[:12]
    return _START + base64.urlsafe_b64encode(UUID(thread_id).bytes).decode().rstrip("=") + call_id


def thread_of(key: str) -> str:
    """Return the thread that a call's id names.

    Raises:
        Refused: if this server did not give the id.
    """
    coded = key.removeprefix(_START)[:_THREAD]
    try:
        return str(UUID(bytes=base64.b64decode(f"{coded}==", altchars=b"-_", validate=True)))
    except ValueError:
        raise Refused(f"no run waits for the result of {key!r}", "messages", status=404) from None


def tool_calls(thread_id: str, calls: Sequence[PendingToolCall]) -> list[JsonObject]:
    """Return calls as OpenAI's clients read them."""
    return [
        {
            "id": id_of(thread_id, call),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.args, ensure_ascii=False)},
        }
        for call in calls
    ]


def resume(
    thread_id: str, calls: Sequence[PendingToolCall], results: Mapping[str, str]
) -> dict[str, list[dict[str, str]]]:
    """Return the values that resume a waiting thread, by its interrupts.

    Args:
        thread_id: The thread.
        calls: The calls that it waits for.
        results: The text of each result by the id that the client knows.

    Raises:
        Refused: if a result is missing, or nothing waits for it.
    """
    by_id = {id_of(thread_id, call): call for call in calls}
    if unknown := results.keys() - by_id.keys():
        raise Refused(f"no run waits for the result of {sorted(unknown)[0]!r}", "messages", status=404)
    if missing := by_id.keys() - results.keys():
        raise Refused(f"the result of {sorted(missing)[0]!r} is missing: send a tool message for each call", "messages")
    values: dict[str, list[dict[str, str]]] = {}
    for key, call in by_id.items():
        values.setdefault(call.interrupt, []).append({"tool_call_id": call.key, "content": results[key]})
    return values
