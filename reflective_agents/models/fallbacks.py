"""The models to ask where one fails."""

import time
from collections.abc import Sequence
from functools import partial

from langchain_core.language_models import BaseChatModel

from reflective_agents.models.capabilities import capabilities_of, speaks_openai, unbind, with_tools
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import get_model
from reflective_agents.state.json_types import JsonObject

REST = 60.0
"""Seconds for which a model that has failed is not asked, where there are others."""
_OPENAIS_OWN = ("tools", "tool_choice", "extra_body", "response_format")
"""Options that each provider has in a form of its own."""


def in_turn(base: BaseChatModel, meter: Meter) -> Sequence[BaseChatModel]:
    """Return the models to ask, one after another: without those that have just failed, unless all have."""
    if not meter.fallback_models:
        return [base]
    make = partial(get_model, max_answer_tokens=meter.max_answer_tokens, call_timeout=meter.call_timeout)
    chats = [base, *map(make, meter.fallback_models)]
    return [chat for chat in chats if not _rests(chat)] or chats


def _rests(chat: BaseChatModel) -> bool:
    failed_at = capabilities_of(chat).failed_at
    return failed_at is not None and time.monotonic() - failed_at < REST


def rebound(base: BaseChatModel, chat: BaseChatModel, bound: JsonObject) -> JsonObject:
    """Return the options that are bound to a model in the form in which another one takes them."""
    if chat is base or (speaks_openai(base) and speaks_openai(chat)):
        return bound
    options = {name: value for name, value in bound.items() if name not in _OPENAIS_OWN}
    if not bound.get("tools"):
        return options
    _, again = unbind(with_tools(chat, bound["tools"], _name_in(bound.get("tool_choice"))))
    return {**options, **again}


def _name_in(choice: JsonObject | str | None) -> str | None:
    """Return the tool that a choice names, or the kind of choice."""
    if not isinstance(choice, dict):
        return choice
    name: str | None = choice.get("function", choice).get("name") or choice.get("type")
    return name
