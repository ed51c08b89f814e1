"""Lets one run at a time begin on a thread, and no more of a user's than the operator allows.

`langgraph dev` queues the second run on a thread by itself. Aegra would let both run, and the answer of one would be
lost. So each row of a run is checked here in the transaction that stores it, whichever route the request came by.
The row shows what Aegra has read of the request. The check waits until no other transaction counts the same runs, and
counts them. A refusal rolls the whole transaction back.
"""

from typing import Any

from sqlalchemy import Connection, event, text
from sqlalchemy.orm import Mapper

from reflective_agents.serve.engine import http_error
from reflective_agents.serve.gate import check_start
from reflective_agents.serve.graphs import TRACE
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.json_types import JsonObject
from reflective_agents.telemetry import spans

# Held until the transaction ends: between the count and the insertion nobody else may count.
_WAIT_FOR_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 81920731))")
_COUNT = text("""
SELECT count(*) FILTER (WHERE thread_id = :thread) AS on_thread, count(*) FILTER (WHERE user_id = :user) AS of_user
FROM runs WHERE status IN ('pending', 'running') AND (thread_id = :thread OR user_id = :user)
""")
_IS_THERE = text("SELECT count(*) FROM thread WHERE thread_id = :thread")
_BUSY = Refused("another run is under way on this thread: wait for it, or cancel it", status=409)


def watch_runs() -> None:
    """Check every run that Aegra stores from now on in this process."""
    from aegra_api.core.orm import Run, Thread

    event.listen(Thread, "before_insert", _make_thread)
    event.listen(Run, "before_insert", _admit)


def _make_thread(_: Mapper[Any], connection: Connection, thread: Any) -> None:
    """Refuse to make a thread that another request has made meanwhile."""
    connection.execute(_WAIT_FOR_TURN, {"key": f"thread {thread.thread_id}"})
    if connection.execute(_IS_THERE, {"thread": thread.thread_id}).scalar():
        raise http_error(_BUSY)


def _admit(_: Mapper[Any], connection: Connection, run: Any) -> None:
    """Refuse a run that may not begin, or not now. Aegra locked its thread when it set the status of the thread."""
    execution = run.execution_params["execution"]
    # Aegra merges a checkpoint of the request into the configuration when it runs it.
    configurable = {**(execution["checkpoint"] or {}), **(execution["config"].get("configurable") or {})}
    try:
        check_start(
            run.execution_params["graph_id"],
            {**execution, "config": {**execution["config"], "configurable": configurable}},
        )
        _check_active_runs(connection, run.thread_id, run.user_id)
    except Refused as refusal:
        raise http_error(refusal) from refusal
    _pass_on_trace(execution["config"])


def _pass_on_trace(config: JsonObject) -> None:
    """Let the worker, maybe of another process, go on with the trace of the request, and not with what that names."""
    (config.get("configurable") or {}).pop(TRACE, None)
    if headers := spans.carrier():
        config.setdefault("configurable", {})[TRACE] = headers


def _check_active_runs(connection: Connection, thread: str, user: str) -> None:
    most = policy().runs_at_once
    if most is not None:
        connection.execute(_WAIT_FOR_TURN, {"key": f"user {user}"})
    active = connection.execute(_COUNT, {"thread": thread, "user": user}).one()
    if active.on_thread:
        raise _BUSY
    if most is not None and active.of_user >= most:
        raise Refused(f"{most} runs of yours are under way: wait for one, or cancel one", status=429)
