"""Requests to OpenAI's chat completions, read and checked; what cannot be done is refused by name.

Fields that only change how an answer is billed, stored or labelled have no effect. How words are sampled is the
choice of a strategy that sends a prompt several times, since replies that are all alike would be no choice: what
a client sets there is not done, and `ignored` names it. Every other strategy does it, unless the operator has decided.

Clients send many fields by themselves, so what a run can do without is never refused because the operator's rules do
not mention it: it is ignored by name. What a rule bounds or forbids, the gate refuses.
"""

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator

from reflective_agents.serve.chat_parts import ChatMessage, NamedTool, Objects, ResponseFormat, StreamOptions
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, UnknownStrategy
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.text.structure import Json
from reflective_agents.text.validation import in_plain_words

NO_EFFECT = (
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
    "verbosity",
)
DEFAULTS = {"logprobs": False, "n": 1, "top_logprobs": 0}
"""What would change the form of an answer: only OpenAI's default may be given."""
IGNORED = "x-ignored"
"""The header of an answer that names what was not done."""
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_SAMPLING = ("top_p", "top_k", "presence_penalty", "frequency_penalty")
"""Parameters of sampling besides the temperature."""
_DEFAULTS = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "parallel_tool_calls": True}
"""OpenAI's defaults, which ask for nothing."""
_TOOL_USE = {"call_client_tool", "parallel_calls"}
"""The settings that say how a client's tools are called."""
_PARAMETERS = "model_parameters"
_THREAD = re.compile(r"[!-.0-~\xa1-\xff]([ -.0-~\xa0-\xff]*[!-.0-~\xa1-\xff])?")
"""Names of threads: Aegra puts them into addresses and, as they are, into headers."""
_THINKING = {"none": "off", "minimal": "low", "xhigh": "high", "max": "high"}
"""The efforts for which the setting `thinking` has another name."""


class ChatRequest(BaseModel):
    """The body of POST /v1/chat/completions.

    Beyond OpenAI's own fields it has `settings` of the strategy, the `thread_id` of a conversation that the server
    keeps, and `on_disconnect`: whether a run goes on that nobody waits for any more.
    """

    model_config = ConfigDict(extra="forbid")

    model: str
    messages: Annotated[list[ChatMessage], Field(fail_fast=True)] = Field(min_length=1)
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    response_format: ResponseFormat | None = None
    tools: Objects = Field(default_factory=list)
    tool_choice: Literal["auto", "none", "required"] | NamedTool = "auto"
    parallel_tool_calls: bool | None = None
    reasoning_effort: Effort | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    settings: JsonObject = Field(default_factory=dict)
    thread_id: str | None = Field(default=None, min_length=1, max_length=100)
    on_disconnect: Literal["cancel", "continue"] = "cancel"
    _names: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, fields: JsonObject, names: Mapping[str, str]) -> Self:
        """Return what a request of another protocol comes to.

        Args:
            fields: The fields of this one.
            names: What the client calls those that it knows under another name.

        Raises:
            Refused: if a part of it cannot be done here.
        """
        try:
            request = cls.model_validate(fields)
        except ValidationError as error:
            raise refusal_of(error) from error
        request._names = names
        return request

    @field_validator("thread_id")
    @classmethod
    def _fits_addresses_and_headers(cls, name: str | None) -> str | None:
        if name and not _THREAD.fullmatch(name):
            raise ValueError(
                "it is made of ASCII or Latin-1 characters, without a slash, and without blanks at its ends"
            )
        return name

    @property
    def strategy(self) -> str:
        """The strategy: the part of `model` before the first colon."""
        return self.model.partition(":")[0]

    @property
    def stops(self) -> list[str]:
        """Texts at which the answer is cut off; empty ones are left out, since they stop nothing."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [stop for stop in stops if stop]

    def context(self) -> JsonObject:
        """Return the settings of the run, as its caller gives them.

        Raises:
            Refused: if the strategy has no such setting, or it cannot have this value.
        """
        return self._run.settings

    @property
    def ignored(self) -> list[str]:
        """What the request asks for and the run does not do: the strategy cannot, or the operator decides it.

        Each by the name under which the client has sent it.
        """
        return [self._names.get(name, name) for name in self._run.ignored]

    @cached_property
    def _run(self) -> "_Run":
        """What the run is to do of the request."""
        schema = schema_of(self.strategy)
        given = self._binding(schema) | self.settings
        plain = check_settings(schema, given)
        # A run that goes on has what it was given at its beginning, unless it is given anew.
        goes_on = _TOOL_USE & schema.model_fields.keys() if self.tool_results() else ()
        added: JsonObject = {name: getattr(schema.ambient(), name) for name in goes_on}
        parameters, ignored = JsonObject(), list[str]()
        for wish in self._wishes():
            if not _is_done(wish, plain):
                ignored.append(wish.name)
            elif wish.setting == _PARAMETERS:
                parameters[wish.name] = wish.value
            else:
                added[wish.setting] = wish.value
        # The narrower wins: the request's parameters, and among them those that its settings name, maybe as text.
        if parameters:
            named = plain.own_parameters if _PARAMETERS in given else {}
            added[_PARAMETERS] = parameters | named
            given.pop(_PARAMETERS, None)
        settings = added | given
        if added:
            check_settings(schema, settings)
        return _Run(settings, ignored)

    def _binding(self, schema: type[Context]) -> JsonObject:
        """Return the settings without which the answer would not be what the client can read."""
        tools = self._offered_tools()
        if tools and "client_tools" not in schema.model_fields:
            with_tools = ", ".join(
                name for name in strategy_names() if "client_tools" in settings_of(name).model_fields
            )
            raise Refused(f"{self.strategy} calls no tools of a client; these do: {with_tools}", "tools")
        binding = {"model": self.model.partition(":")[2], "answer_schema": self.answer_schema, "client_tools": tools}
        return {name: value for name, value in binding.items() if value}

    def _wishes(self) -> "list[_Wish]":
        """Return what else the request asks for, other than OpenAI's defaults."""
        is_old = self.max_completion_tokens is None
        max_tokens = self.max_tokens if is_old else self.max_completion_tokens
        thinking = _THINKING.get(self.reasoning_effort or "", self.reasoning_effort)
        uses_tools = bool(self.tools or self.tool_results())
        demands = uses_tools and self.tool_choice not in ("auto", "none")
        wishes = [
            _Wish("max_tokens" if is_old else "max_completion_tokens", "max_answer_tokens", max_tokens),
            _Wish("seed", "seed", self.seed),
            _Wish("reasoning_effort", "thinking", thinking),
            _Wish("tool_choice", "call_client_tool", True if demands else None),
            _Wish("parallel_tool_calls", "parallel_calls", self.parallel_tool_calls if uses_tools else None),
            _Wish("temperature", "temperature", self.temperature),
            *(_Wish(name, _PARAMETERS, getattr(self, name)) for name in _SAMPLING),
        ]
        return [wish for wish in wishes if wish.value is not None and wish.value != _DEFAULTS.get(wish.name)]

    def _offered_tools(self) -> Objects:
        """Return the tools that the agent may call: of a named choice that tool alone."""
        if self.tool_choice == "required" and not self.tools:
            raise Refused("a tool is required, and there is none to call", "tool_choice")
        if isinstance(self.tool_choice, str):
            return [] if self.tool_choice == "none" else self.tools
        name = self.tool_choice.function.name
        functions = [tool.get("function") for tool in self.tools]
        chosen = [
            tool
            for tool, function in zip(self.tools, functions, strict=True)
            if isinstance(function, dict) and function.get("name") == name
        ]
        if not chosen:
            raise Refused(f"there is no tool {name!r} to choose", "tool_choice")
        return chosen

    @property
    def answer_schema(self) -> JsonObject | None:
        """The JSON schema that the answer has to fit; None for text."""
        return self.response_format.answer_schema if self.response_format else None

    def tool_results(self) -> dict[str, str]:
        """Return the results of the client's tools that the conversation ends with, by the ids of the calls."""
        results: dict[str, str] = {}
        for message in reversed(self.messages):
            if message.role != "tool":
                break
            results[message.tool_call_id or ""] = str(message.content)
        return results

    def question(self) -> Objects:
        """Return the conversation; on a thread only what is new, since the thread holds the rest."""
        messages = self.messages
        if self.thread_id:
            # OpenAI's clients send the whole conversation each time: new is what follows the last answer.
            start = max((count for count, message in enumerate(messages, 1) if message.role == "assistant"), default=0)
            messages = messages[start:]
        return [message.model_dump(exclude_none=True) for message in messages]


class _Wish(NamedTuple):
    """A field of a request that a run can do without: its name, the setting that does it, and the value of that."""

    name: str
    setting: str
    value: Json


class _Run(NamedTuple):
    """The settings of a run, and the fields of the request that it ignores."""

    settings: JsonObject
    ignored: list[str]


def _is_done(wish: _Wish, settings: Context) -> bool:
    """Tell whether a run does what is wished: its strategy can, and the operator leaves it open."""
    schema = type(settings)
    if wish.setting not in schema.model_fields or settings.applies_only(wish.setting):
        return False
    if settings.tries_several and wish.setting in ("temperature", _PARAMETERS):
        return False
    if wish.setting == _PARAMETERS and wish.name in schema.ambient().model_parameters:
        return False
    return policy().mentions(wish.setting, wish.name)


def schema_of(strategy: str) -> type[Context]:
    """Return the settings of a strategy.

    Raises:
        Refused: if there is no such strategy.
    """
    try:
        return settings_of(strategy)
    except UnknownStrategy as error:
        raise Refused(str(error), "model", status=404, code="model_not_found") from error


def check_settings(schema: type[Context], settings: JsonObject) -> Context:
    """Return the settings as the strategy reads them.

    Raises:
        Refused: if the strategy has no such setting, or it cannot have this value.
    """
    try:
        context = schema.model_validate(settings)
        context.check_effect()
    except ValidationError as error:
        raise refusal_of(error, "settings.") from error
    except Misuse as error:
        raise Refused(f"settings.{error}") from error
    return context


def parse(body: JsonObject) -> ChatRequest:
    """Return the request that a body holds.

    Raises:
        Refused: if a part of it cannot be done.
    """
    return ChatRequest.of(without_defaults(body, NO_EFFECT), {})


def without_defaults(body: JsonObject, no_effect: Collection[str]) -> JsonObject:
    """Return the fields of a body that are given and have an effect.

    Raises:
        Refused: if one of the others asks for what cannot be done.
    """
    for name, default in DEFAULTS.items():
        if body.get(name, default) not in (default, None):
            raise Refused(f"{name} cannot be {body[name]!r}: the strategy chooses it", name, code="unsupported_value")
    return {name: value for name, value in body.items() if value is not None and name not in (*DEFAULTS, *no_effect)}


_MAX_NAME = 200


def refusal_of(error: ValidationError, prefix: str = "") -> Refused:
    """Return the refusal of a body, or of settings, that names the first part which is wrong."""
    first = error.errors(include_url=False)[0]
    # Of the alternatives of a field the location names the type, too.
    location = takewhile(lambda part: isinstance(part, int) or part.isidentifier(), first["loc"])
    name = (prefix + ".".join(map(str, location))).removesuffix(".")[:_MAX_NAME]
    if first["type"] == "extra_forbidden":
        return Refused(f"there is no {name}{first.get('ctx', {}).get('hint', '')}", name, code="unknown_parameter")
    return Refused(f"{name}: {in_plain_words(first['msg'])}", name)
