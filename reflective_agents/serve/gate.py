"""The gate: checks what a request makes the engine do, by what the engine has read of the request.

Both servers start runs by several routes with different bodies. Nothing here reads those: `langgraph dev` shows `auth`
each run that it is about to store, `admission` sees each row that Aegra is about to store, and the graph itself
(`graphs`) sees the input that it finally gets, and each change of a thread's state.

The owner of a thread may resume it with a value, change channels by their names, and send it to nodes by their names.
What a run has spent, which run it is, and by how much its limits were raised is written by the run alone: whoever could
write it would have no limits. Without keys and rules the only caller is the operator, who may write anything.
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from langgraph.types import Command
from pydantic import BaseModel, Field, ValidationError

from reflective_agents.graphs import graph_of
from reflective_agents.serve.chat_request import check_settings
from reflective_agents.serve.keys import keys_required
from reflective_agents.serve.policy import VARIABLE, policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.errors import OperatorOnly
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.limits import sentence
from reflective_agents.state.policy import check_caller
from reflective_agents.state.run import run_only
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.text.validation import in_plain_words

_ENGINES = re.compile(r"(__|langgraph_|x-|checkpoint_)|((run|thread|user|graph|assistant|cron|request)_id|user-agent)$")
"""Names that the engines add to the settings in `config.configurable`, and copy into the context."""
_INTERNAL = "__pregel_"
"""How the names of LangGraph's own data in `config.configurable` begin."""
_SUBGRAPH = ("checkpoint_ns", "checkpoint_map")
"""Names by which a request would reach the state of a strategy within a run."""


class Config(BaseModel):
    """What a request may configure beside settings, as LangGraph reads it."""

    configurable: JsonObject | None = None
    recursion_limit: int | None = Field(default=None, ge=1)
    max_concurrency: int | None = Field(default=None, ge=1)
    tags: list[str] | None = None
    callbacks: None = None


def check_start(strategy: str | None, request: JsonMapping) -> None:
    """Refuse a run that may not begin.

    Args:
        strategy: The strategy; None for an assistant of a user: its graph checks the settings when it runs.
        request: `config`, `context` and `command`, as the engine will use them.

    Raises:
        Refused: with 400 for settings that the strategy does not have, with 403 for what the operator does not allow.
    """
    check_settings_of(strategy, request)
    check_command(request.get("command") or {})
    if request.get("feedback_keys"):
        raise _forbidden("feedback is not kept here, and its addresses are not asked for elsewhere")


async def check_daily_quota(user: str) -> None:
    """Refuse a user who has nothing left to spend today.

    Raises:
        Refused: with 429.
    """
    quota = policy().daily_quota()
    if quota and (limit := await quota.used_up(user)):
        raise Refused(f"{sentence(limit)}: a new day begins at midnight UTC", status=429)


def check_offered(strategy: str) -> None:
    """Refuse a strategy that is not offered.

    Raises:
        Refused: if it is not.
    """
    if not policy().offers(strategy):
        raise _forbidden(f"{strategy} is not offered here")


def check_settings_of(strategy: str | None, request: JsonMapping) -> None:
    """Refuse settings that the strategy does not have, or that only the operator or the engine may choose.

    Args:
        strategy: The strategy; if it is None, only the names are checked here: a run checks the values.
        request: `config` and `context` of a run, or of an assistant.

    Raises:
        Refused: as `check_start`.
    """
    check_config(request.get("config") or {})
    settings = _settings(request)
    if strategy is None:
        return _check_names(settings)
    check_offered(strategy)
    schema = settings_of(strategy)
    try:
        check_caller(check_settings(schema, settings), schema.ambient)
    except OperatorOnly as error:
        raise _forbidden(str(error)) from error


def check_config(config: JsonMapping) -> None:
    """Refuse a configuration that no run could have, or that reaches the state of another run.

    Raises:
        Refused: with 400, or 403.
    """
    try:
        configurable = Config.model_validate(config).configurable or {}
    except ValidationError as error:
        first = error.errors()[0]
        raise Refused(f"config.{'.'.join(map(str, first['loc']))}: {in_plain_words(first['msg'])}") from error
    # An empty `checkpoint_ns` is the thread itself, which clients send.
    wrong = [name for name in configurable if name.startswith(_INTERNAL) or (name in _SUBGRAPH and configurable[name])]
    if wrong and serves_others():
        raise _forbidden(f"{wrong[0]} cannot be set by a request")


def check_metadata(metadata: JsonMapping) -> None:
    """Refuse an assistant that would pass for one made by the server, which all users see.

    Raises:
        Refused: if it would.
    """
    if "created_by" in metadata and serves_others():
        raise _forbidden("created_by is written by the server alone")


def check_command(command: Command[Any] | JsonMapping) -> None:
    """Refuse a command that does more than resume, change channels by name, or go to nodes by name.

    Raises:
        Refused: if it does.
    """
    if isinstance(command, Command):
        command = {"update": command.update, "goto": command.goto, "graph": command.graph}
    update, goto = command.get("update"), command.get("goto")
    check_update(update)
    # A `Send` would run a node with an input of the caller's, beside all checks of the state.
    nodes = goto if isinstance(goto, (list, tuple)) else [goto or ""]
    if serves_others() and not all(isinstance(node, str) for node in nodes):
        raise _forbidden("a run is sent to nodes by their names: an input of their own cannot be given")
    if serves_others() and command.get("graph"):
        raise _forbidden("a command is for the thread's own graph")


def check_update(values: Any) -> None:
    """Refuse values, in any form, that write a channel which only runs may write.

    Raises:
        Refused: if they do.
    """
    reserved = sorted(name for name in {*_names(values)} if name in written_by_runs() or name.startswith("__"))
    if reserved and serves_others():
        raise _forbidden(f"{reserved[0]} is written by the run alone")


def serves_others() -> bool:
    """Tell whether requests may come from others than the operator: keys are required, or there are rules."""
    return keys_required() or bool(os.environ.get(VARIABLE))


@cache
def written_by_runs() -> frozenset[str]:
    """Return the channels that runs alone write, of all strategies."""
    return frozenset(
        name for strategy in strategy_names() for name in run_only(graph_of(strategy).builder.state_schema)
    )


def _names(values: Any) -> Iterator[str]:
    """Yield the names under which values might be written: objects, lists of them, and lists of pairs."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        yield from map(str, values)
    elif isinstance(values, (list, tuple)):
        # A pair of name and value; LangGraph takes updates as lists of these, too.
        for part in values[:1] if len(values) == 2 and isinstance(values[0], str) else values:
            yield from _names(part)


def _settings(request: JsonMapping) -> JsonObject:
    configurable: JsonObject = (request.get("config") or {}).get("configurable") or {}
    settings = {name: value for name, value in configurable.items() if value is not None}
    settings |= request.get("context") or {}
    return {name: value for name, value in settings.items() if not _ENGINES.match(name)}


def _check_names(settings: JsonObject) -> None:
    names = {name for strategy in strategy_names() for name in settings_of(strategy).model_fields}
    if unknown := sorted(settings.keys() - names):
        raise Refused(f"there is no setting {unknown[0]}")


def _forbidden(reason: str) -> Refused:
    return Refused(reason, status=403)
