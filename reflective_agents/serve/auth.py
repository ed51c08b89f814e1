"""Who may do what, on both servers: `langgraph dev` and Aegra load `auth` from here.

Users have threads, runs and assistants of their own; those of others do not exist for them. Settings are checked when
a run, or an assistant, is created: both servers would drop unknown ones silently. The store is reached by runs alone.

The servers differ: langgraph-api shows `create_run` what it is about to store. Aegra shows it the body as it came, and
may read that differently, so `admission` checks the runs of Aegra. Each kind of resource has a filter of its own,
since one for all of them would hide the assistants that the server itself has made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid5

from langgraph_sdk import Auth

from reflective_agents.serve.engine import IN_AEGRA
from reflective_agents.serve.gate import (
    check_daily_quota,
    check_metadata,
    check_settings_of,
    check_start,
    serves_others,
)
from reflective_agents.serve.keys import UnknownKey, keys_required, user_of
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import strategy_names

Value = Any
"""What a handler is asked about: a dictionary whose form depends on the server."""
Filter = JsonObject | None

auth = Auth()
ASSISTANTS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The namespace in which both servers number the assistants of the graphs."""


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """Tell who sends a request."""
    try:
        return {"identity": user_of(headers)}
    except UnknownKey as error:
        raise Auth.exceptions.HTTPException(status_code=401, detail=str(error)) from error


@auth.on.threads
async def threads(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Keep the threads of users apart."""
    return _owner_filter(ctx, value)


@auth.on.threads.update
async def update_thread(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users change their own threads. A rollback would take back what a run has spent."""
    _refuse_to_lose_usage(value.get("action") == "rollback")
    return _owner_filter(ctx, value)


@auth.on.threads.delete
async def delete_thread(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users delete their own threads. `langgraph dev` deletes with a run what it has spent on its thread."""
    _refuse_to_lose_usage(bool(value.get("run_id")) and not IN_AEGRA)
    return _owner_filter(ctx, value)


@auth.on.threads.create_run
async def create_run(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let a run begin if it may, and its user may still spend something today."""
    with _as_http_error():
        if not IN_AEGRA:
            # Aegra's runs are checked by `admission`, which sees what Aegra has read of the request.
            check_start(_strategy(str(value["assistant_id"])), value["kwargs"])
            _refuse_to_lose_usage(value.get("multitask_strategy") == "rollback")
        await check_daily_quota(ctx.user.identity)
    return _owner_filter(ctx, value)


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Show the graphs to everybody, and to users their own assistants."""
    owned = _owner_filter(ctx, {})
    # `{}` above: to read an assistant must not write the reader into its metadata as its owner.
    return owned and {"$or": [owned, {"created_by": "system"}]}


@auth.on.assistants.create
async def create(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let an assistant be made if its settings are allowed."""
    with _as_http_error():
        check_settings_of(value.get("graph_id"), value)
        check_metadata(value.get("metadata") or {})
    return _owner_filter(ctx, value)


@auth.on.assistants.update
async def update(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users change their own assistants, if the settings are allowed."""
    with _as_http_error():
        check_settings_of(value.get("graph_id"), value)
        check_metadata(value.get("metadata") or {})
    return _owner_filter(ctx, value)


@auth.on.assistants.delete
async def delete(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users delete their own assistants."""
    return _owner_filter(ctx, {})


@auth.on.crons
async def crons(ctx: Auth.types.AuthContext, value: Value) -> bool:
    """Refuse schedules where there are keys or rules: they are for the operator."""
    return not serves_others()


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: Value) -> bool:
    """Refuse the store where keys are required: only runs read and write memories, and they know the owner."""
    return not keys_required()


def _owner_filter(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    if not keys_required():
        return None
    owner = {"owner": ctx.user.identity}
    if isinstance(value.get("metadata"), dict):
        value["metadata"].update(owner)
    return owner


def _strategy(assistant: str) -> str | None:
    """Return the strategy that an assistant made by the server runs; None for an assistant of a user."""
    return next((name for name in strategy_names() if assistant in (name, str(uuid5(ASSISTANTS, name)))), None)


@contextmanager
def _as_http_error() -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        raise Auth.exceptions.HTTPException(status_code=refusal.status, detail=str(refusal)) from refusal


def _refuse_to_lose_usage(lost: bool) -> None:
    if lost and serves_others():
        raise Auth.exceptions.HTTPException(status_code=403, detail="this would take back what a run has spent")
