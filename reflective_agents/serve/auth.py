"""Who may do what, on both servers: `langgraph dev` and Aegra load `auth` from here.

Everybody has threads, runs and assistants of his own; those of others do not exist for him. Settings are checked when
a run, or an assistant, is created: both servers would drop unknown ones silently. The store is reached by runs alone.

The servers differ: langgraph-api passes headers by name, Aegra by position; the settings lie in `value["context"]` or
in `value["kwargs"]["context"]`; and a filter on everything would hide the assistants that the server itself has made.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID, uuid5

from langgraph_sdk import Auth

from reflective_agents.serve.admission import admit
from reflective_agents.serve.asked import check_settings
from reflective_agents.serve.graphs import forbidden_write
from reflective_agents.serve.keys import Unknown, keys_are_asked_for, user_of
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.errors import OperatorOnly
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.policy import check_caller
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.text.structure import Json

Value = Any
"""What a handler is asked about: a dictionary whose form depends on the server."""
Filter = JsonObject | None

auth = Auth()
_ASSISTANTS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The namespace in which both servers number the assistants of the graphs."""
_SERVERS = re.compile(r"(__|langgraph_|x-|checkpoint_)|((run|thread|user|graph|assistant|cron|request)_id|user-agent)$")
"""What the servers put into `config.configurable` beside settings."""


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


@auth.on.threads.create_run
async def create_run(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let a run begin if its settings are allowed and nothing else runs on its thread."""
    asked = {**value, **(value.get("kwargs") or {})}
    _check(_strategy(str(asked["assistant_id"])), asked)
    if reason := forbidden_write((asked.get("command") or {}).get("update")):
        raise Auth.exceptions.HTTPException(status_code=403, detail=reason)
    refusal = await admit(ctx.user.identity, asked, policy().runs_at_once, policy().days())
    if refusal:
        raise Auth.exceptions.HTTPException(status_code=refusal.status, detail=str(refusal))
    return _owned(ctx, value)


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Show the graphs to everybody, and to each user his own assistants."""
    owned = _owned(ctx, {})
    return owned and {"$or": [owned, {"created_by": "system"}]}


@auth.on.assistants.create
async def create(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let an assistant be made if its settings are allowed."""
    _check(value.get("graph_id"), value)
    return _owned(ctx, value)


@auth.on.assistants.update
async def update(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users change their own assistants, if the settings are allowed."""
    _check(value.get("graph_id"), value)
    return _owned(ctx, value)


@auth.on.assistants.delete
async def delete(ctx: Auth.types.AuthContext, value: Value) -> Filter:
    """Let users delete their own assistants."""
    return _owned(ctx, {})


@auth.on.crons
async def crons(ctx: Auth.types.AuthContext, value: Value) -> bool:
    """Refuse schedules where keys are required: they are for the operator."""
    return not keys_are_asked_for()


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


def _check(strategy: str | None, asked: Value) -> None:
    """Refuse settings that the strategy does not have, and those that the operator does not allow.

    The strategy of a user's own assistant is not told here; a run checks the values of its settings when it begins.
    """
    settings = dict(_settings(asked))
    try:
        if strategy is None:
            _check_names(settings)
            return
        if not policy().offers(strategy):
            raise OperatorOnly(f"{strategy} is not offered here")
        schema = settings_of(strategy)
        check_caller(check_settings(schema, settings), schema.ambient)
    except OperatorOnly as error:
        raise Auth.exceptions.HTTPException(status_code=403, detail=str(error)) from error
    except Refused as refusal:
        raise Auth.exceptions.HTTPException(status_code=400, detail=str(refusal)) from refusal


def _settings(asked: Value) -> Iterator[tuple[str, Json]]:
    configurable: dict[str, Json] = (asked.get("config") or {}).get("configurable") or {}
    for name, value in configurable.items():
        if not _SERVERS.match(name) and value is not None:
            yield name, value
    yield from (asked.get("context") or {}).items()


def _check_names(settings: Mapping[str, Json]) -> None:
    known = {name for strategy in strategy_names() for name in settings_of(strategy).model_fields}
    if unknown := sorted(settings.keys() - known):
        raise Refused(f"there is no setting {unknown[0]}")
