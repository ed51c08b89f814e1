"""Who may do what, on both servers: `langgraph dev` and Aegra load `auth` from here.

Everybody has threads, runs and assistants of his own; those of others do not exist for him. Settings are checked when
a run, or an assistant, is created: both servers would drop unknown ones silently. The store is reached by runs alone.

The servers differ: langgraph-api shows `create_run` what it is about to store, Aegra a body as it came, which it may
read otherwise: its runs pass the gate in `admission`. A filter on everything would hide the assistants that the server
itself has made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid5

from langgraph_sdk import Auth

from reflective_agents.serve.engine import IN_AEGRA
from reflective_agents.serve.gate import check_day, check_metadata, check_settings_of, check_start, for_others
from reflective_agents.serve.keys import Unknown, keys_are_asked_for, user_of
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import strategy_names

Value = Any
"""What a handler is asked about: a dictionary whose form depends on the server."""
Filter = JsonObject | None

auth = Auth()
_ASSISTANTS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The namespace in which both servers number the assistants of the graphs."""


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """Tell who sends a request."""
    try:
        return {"identity": user_of(headers)}
    except Unknown as error:
        raise Auth.exceptions.HTTPException(status_code=401, detail=str(error)) from error


@auth.on.threads
async def threads(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Keep the threads of users apart."""
    return _owned(ctx, value)


@auth.on.threads.update
async def update_thread(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users change their own threads. A rollback would take back what a run has spent."""
    _keep_what_was_spent(value.get("action") == "rollback")
    return _owned(ctx, value)


@auth.on.threads.delete
async def delete_thread(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users delete their own threads. `langgraph dev` deletes with a run what it has spent on its thread."""
    _keep_what_was_spent(bool(value.get("run_id")) and not IN_AEGRA)
    return _owned(ctx, value)


@auth.on.threads.create_run
async def create_run(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let a run begin if it may, and its user may still spend something today."""
    with _refusing():
        if not IN_AEGRA:
            check_start(_strategy(str(value["assistant_id"])), value["kwargs"])
            _keep_what_was_spent(value.get("multitask_strategy") == "rollback")
        await check_day(ctx.user.identity)
    return _owned(ctx, value)


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Show the graphs to everybody, and to each user his own assistants."""
    owned = _owned(ctx, {})
    return owned and {"$or": [owned, {"created_by": "system"}]}


@auth.on.assistants.create
async def create(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let an assistant be made if its settings are allowed."""
    with _refusing():
        check_settings_of(value.get("graph_id"), value)
        check_metadata(value.get("metadata") or {})
    return _owned(ctx, value)


@auth.on.assistants.update
async def update(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users change their own assistants, if the settings are allowed."""
    with _refusing():
        check_settings_of(value.get("graph_id"), value)
        check_metadata(value.get("metadata") or {})
    return _owned(ctx, value)


@auth.on.assistants.delete
async def delete(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users delete their own assistants."""
    return _owned(ctx, {})


@auth.on.crons
async def crons(ctx: Auth.types.AuthContext, value: Value) -> bool:
    """Refuse schedules where there are keys or rules: they are for the operator."""
    return not for_others()


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: Value) -> bool:
    """Refuse the store where keys are required: only runs read and write memories, and they know the owner."""
    return not keys_are_asked_for()


def _owned(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    if not keys_are_asked_for():
        return None
    owner = {"owner": ctx.user.identity}
    if isinstance(value.get("metadata"), dict):
        value["metadata"].update(owner)
    return owner


def _strategy(assistant: str) -> str | None:
    """Return the strategy of an assistant that is the server's own."""
    return next((name for name in strategy_names() if assistant in (name, str(uuid5(_ASSISTANTS, name)))), None)


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        raise Auth.exceptions.HTTPException(status_code=refusal.status, detail=str(refusal)) from refusal


def _keep_what_was_spent(lost: bool) -> None:
    if lost and for_others():
        raise Auth.exceptions.HTTPException(status_code=403, detail="this would take back what a run has spent")
