"""The faults a provider can be made to show, and what each does to a reply."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from langchain_core.exceptions import (
    ModelAuthenticationError,
    ModelConnectionError,
    ModelInvalidRequestError,
    ModelRateLimitError,
    ModelTimeoutError,
)

from reflective_agents.state.json_types import JsonObject
from reflective_agents.testing.script import Call, Choice, Request

Fault: TypeAlias = Literal[
    "400",  # the request is refused as invalid
    "401",  # the key is refused
    "429",  # too many requests, with a Retry-After header
    "500",  # the server failed
    "timeout",  # no answer until the client gives up
    "reset",  # the connection breaks; in a stream after its first words
    "truncated_json",  # the body ends in its middle
    "length",  # half of the text or of the tool arguments, finish_reason "length"
    "empty_choices",  # no candidate at all
    "n_ignored",  # one candidate, however many were asked for
    "null_content",  # neither text nor a tool call
    "no_tool_call",  # plain text, though a tool was forced
    "unknown_tool",  # calls a tool named no_such_tool
    "wrong_arguments",  # arguments {"wrong": 1}
    "bad_arguments_json",  # arguments that are not JSON
    "score_out_of_range",  # every number named "score" is 100
    "score_nan",  # every number named "score" is NaN
]

STATUS_ERRORS: dict[str, tuple[str, str]] = {
    "400": ("invalid_request_error", "The request is invalid."),
    "401": ("invalid_api_key", "Incorrect API key provided."),
    "429": ("rate_limit_exceeded", "Rate limit reached."),
    "500": ("server_error", "The server had an error."),
}
"""The type and text of the faults that are HTTP statuses."""

_ERRORS: list[tuple[type[Exception], Fault]] = [
    (ModelInvalidRequestError, "400"),
    (ModelAuthenticationError, "401"),
    (ModelRateLimitError, "429"),
    (ModelTimeoutError, "timeout"),
    (ModelConnectionError, "reset"),
]


def fault_of(error: Exception) -> Fault:
    """Return the fault by which a server reports an error that a script replied; "500" for any other error."""
    for kind, fault in _ERRORS:
        if isinstance(error, kind):
            return fault
    return "500"


def spoil(fault: Fault | None, choices: list[Choice], request: Request) -> list[Choice]:
    """Put a fault into the candidates; faults of the transport leave them as they are."""
    if fault == "empty_choices":
        return []
    if fault == "n_ignored":
        return choices[:1]
    change = _CHANGES.get(fault or "")
    return [change(choice, request) for choice in choices] if change else choices


def _length(choice: Choice, _: Request) -> Choice:
    return choice.cut(choice.size // 2)


def _null_content(choice: Choice, _: Request) -> Choice:
    return Choice(None)


def _no_tool_call(choice: Choice, _: Request) -> Choice:
    return Choice("I would rather say it in plain words.")


def _unknown_tool(choice: Choice, _: Request) -> Choice:
    return Choice(None, (Call("{}", "call_unknown", "no_such_tool"),), "tool_calls")


def _arguments(text: str) -> Callable[[Choice, Request], Choice]:
    """Make a change that replaces all arguments by `text`, or the JSON text where that is asked for."""

    def change(choice: Choice, request: Request) -> Choice:
        if request.as_json:
            return Choice(text)
        if not request.tools:
            return choice
        made_up = [Call("", f"call_{name}", name) for name in request.tools[:1]]
        calls = choice.calls or made_up
        spoilt = tuple(replace(call, arguments=text) for call in calls)
        return replace(choice, calls=spoilt, finish_reason="tool_calls")

    return change


def _score(value: float) -> Callable[[Choice, Request], Choice]:
    """Make a change that sets every number named "score"."""

    def scored(node: JsonObject) -> JsonObject:
        return {**node, "score": value} if isinstance(node.get("score"), int | float) else node

    def rescored(text: str) -> str:
        return json.dumps(json.loads(text, object_hook=scored))

    def change(choice: Choice, request: Request) -> Choice:
        if request.as_json:
            return replace(choice, content=rescored(choice.content or "{}"))
        calls = tuple(replace(call, arguments=rescored(call.arguments)) for call in choice.calls)
        return replace(choice, calls=calls)

    return change


_CHANGES: dict[str, Callable[[Choice, Request], Choice]] = {
    "length": _length,
    "null_content": _null_content,
    "no_tool_call": _no_tool_call,
    "unknown_tool": _unknown_tool,
    "wrong_arguments": _arguments('{"wrong": 1}'),
    "bad_arguments_json": _arguments('{"broken": '),
    "score_out_of_range": _score(100),
    "score_nan": _score(float("nan")),
}
