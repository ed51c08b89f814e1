"""Requests to OpenAI's responses, read and checked, and what they come to as a request to the chat completions."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from reflective_agents.serve.chat_parts import Objects
from reflective_agents.serve.chat_request import NO_EFFECT as CHAT_NO_EFFECT
from reflective_agents.serve.chat_request import ChatRequest, Effort, refusal_of, without_defaults
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.response_items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemReference,
    Message,
    as_item,
    kind_of,
)
from reflective_agents.serve.run_key import RunKey
from reflective_agents.state.json_types import JsonObject

NO_EFFECT = {*CHAT_NO_EFFECT, "client_metadata", "truncation", "stream_options"} - {"metadata", "store"}
MOST_REFERENCES = 100
"""Answers to which a request may refer: each is looked up."""
_UNREADABLE = "message.output_text.logprobs"
_NAMES = {"max_tokens": "max_output_tokens", "reasoning_effort": "reasoning.effort"}
"""What is called otherwise in chat completions."""


def _as_items(given: object) -> object:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


class TextFormat(BaseModel):
    """The form that an answer must have."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str | None = None
    content: JsonObject | None = Field(default=None, alias="schema")


class TextOptions(BaseModel):
    """How an answer is written; its verbosity has no effect."""

    model_config = ConfigDict(extra="ignore")

    format: TextFormat = Field(default_factory=TextFormat)


class ReasoningOptions(BaseModel):
    """How much is thought; the events of the run are the summary, whatever is asked for."""

    model_config = ConfigDict(extra="ignore")

    effort: Effort | None = None


class FunctionChoice(BaseModel):
    """The tool that a client wants to be called."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["function"]
    name: str


class ResponsesRequest(BaseModel):
    """The body of POST /v1/responses.

    Beyond OpenAI's own fields it has the `settings` of the strategy, and `on_disconnect`, as chat completions have.
    """

    model_config = ConfigDict(extra="forbid")

    model: str
    input: Annotated[list[Item], Field(fail_fast=True), BeforeValidator(_as_items)] = Field(min_length=1)
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool = True
    stream: bool = False
    background: bool = False
    include: list[str] = Field(default_factory=list)
    max_output_tokens: int | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    parallel_tool_calls: bool = True
    reasoning: ReasoningOptions = Field(default_factory=ReasoningOptions)
    temperature: float | None = None
    text: TextOptions = Field(default_factory=TextOptions)
    tool_choice: Literal["auto", "none", "required"] | FunctionChoice = "auto"
    tools: Objects = Field(default_factory=list)
    top_p: float | None = None
    settings: JsonObject = Field(default_factory=dict)
    on_disconnect: Literal["cancel", "continue"] = "cancel"

    @field_validator("include")
    @classmethod
    def _can_be_included(cls, include: list[str]) -> list[str]:
        if _UNREADABLE in include:
            raise ValueError(f"{_UNREADABLE} is not known: a strategy asks several times")
        return include

    @field_validator("tools")
    @classmethod
    def _are_functions(cls, tools: Objects) -> Objects:
        if others := sorted({str(tool.get("type")) for _, tool in _functions(tools)} - {"function"}):
            raise ValueError(f"tools of the client are functions; this server runs no {', '.join(others)}")
        return tools

    def named(self) -> dict[str, tuple[str | None, str]]:
        """Return the namespace and the name of each tool, by the name under which an agent knows it."""
        functions = [(namespace, str(tool.get("name"))) for namespace, tool in _functions(self.tools)]
        return {_full_name(name, namespace): (namespace, name) for namespace, name in functions}

    @field_validator("background")
    @classmethod
    def _can_be_fetched(cls, background: bool, others: ValidationInfo) -> bool:
        if background and not others.data.get("store"):
            raise ValueError("nobody could fetch what goes on alone and is not stored: leave out store")
        return background

    def previous(self) -> RunKey | None:
        """Return the run of the response that this one follows.

        Raises:
            Refused: if there can be no such response.
        """
        if self.previous_response_id is None:
            return None
        if not self.store:
            raise Refused("what follows a stored response is stored with it: leave out store", "store")
        return RunKey.of(self.previous_response_id, "resp", "previous_response_id")

    def references(self) -> set[RunKey]:
        """Return the runs whose answers the input refers to.

        Raises:
            Refused: if there can be no such runs, or they are too many.
        """
        ids = [item.id for item in self.input if isinstance(item, ItemReference) and item.id.startswith("msg_")]
        if len(ids) > MOST_REFERENCES:
            raise Refused(f"the input refers to {len(ids):,} answers, at most {MOST_REFERENCES} are looked up", "input")
        return {RunKey.of(id, "msg", "input") for id in ids}

    def input_items(self, key: RunKey) -> list[JsonObject]:
        """Return the input as the items of a response.

        Args:
            key: The run of the response, by which its items are named.
        """
        start = key.id("item")
        return [
            {"id": f"{start}_{number}", **fields}
            for number, fields in enumerate(filter(None, map(as_item, self.input)))
        ]

    def chat(self) -> ChatRequest:
        """Return the request as one to the chat completions.

        Raises:
            Refused: if a part of it cannot be done there.
        """
        fields: JsonObject = {
            "model": self.model,
            "messages": [*self._messages()],
            "stream": self.stream,
            "max_tokens": self.max_output_tokens,
            "parallel_tool_calls": self.parallel_tool_calls,
            "reasoning_effort": self.reasoning.effort,
            "response_format": self._response_format(),
            "temperature": self.temperature,
            "top_p": self.top_p,
            "tool_choice": self._tool_choice(),
            "tools": [_chat_tool(tool, namespace) for namespace, tool in _functions(self.tools)],
            "settings": self.settings,
            "on_disconnect": "continue" if self.background else self.on_disconnect,
        }
        return ChatRequest.of(fields, _NAMES)

    def _messages(self) -> Iterator[JsonObject]:
        called: set[str] = set()
        calls: list[JsonObject] = []
        others = (number for number, item in enumerate(self.input) if not isinstance(item, FunctionCallOutput))
        last_other = max(others, default=-1)
        for number, item in enumerate(self.input):
            if isinstance(item, FunctionCall):
                called.add(item.call_id)
                function = {"name": _full_name(item.name, item.namespace), "arguments": item.arguments}
                calls.append({"id": item.call_id, "type": "function", "function": function})
                continue
            if calls:
                yield {"role": "assistant", "tool_calls": calls}
                calls = []
            if isinstance(item, Message):
                yield item.model_dump()
            # The call may be a mere reference. If the conversation has gone on since, its answer says what came.
            elif isinstance(item, FunctionCallOutput) and (item.call_id in called or number > last_other):
                yield {"role": "tool", "tool_call_id": item.call_id, "content": item.output}

    def _response_format(self) -> JsonObject | None:
        form = self.text.format
        if form.type == "json_schema":
            return {"type": form.type, "json_schema": {"schema": form.content or {}}}
        return {"type": form.type}

    def _tool_choice(self) -> str | JsonObject:
        choice = self.tool_choice
        return choice if isinstance(choice, str) else {"type": choice.type, "function": {"name": choice.name}}


def with_answers(body: JsonObject, answers: Mapping[RunKey, str]) -> JsonObject:
    """Return a body in which messages stand in the place of references to answers of earlier responses."""
    by_id = {key.id("msg"): answer for key, answer in answers.items()}
    items = [
        {"role": "assistant", "content": by_id[item["id"]]}
        if kind_of(item) == "item_reference" and item["id"] in by_id
        else item
        for item in body["input"]
    ]
    return {**body, "input": items}


def _functions(tools: list[JsonObject]) -> Iterator[tuple[str | None, JsonObject]]:
    """Yield tools, those of namespaces with the name of theirs."""
    for tool in tools:
        if tool.get("type") == "namespace" and isinstance(inner := tool.get("tools"), list):
            yield from ((str(tool.get("name")), each if isinstance(each, dict) else {}) for each in inner)
        else:
            yield None, tool


def _full_name(name: str, namespace: str | None) -> str:
    return f"{namespace}__{name}" if namespace else name


def _chat_tool(tool: JsonObject, namespace: str | None) -> JsonObject:
    function = {name: tool[name] for name in ("name", "description", "parameters") if tool.get(name) is not None}
    if namespace and "name" in function:
        function["name"] = _full_name(function["name"], namespace)
    return {"type": "function", "function": function}


def parse(body: JsonObject) -> ResponsesRequest:
    """Return the request that a body holds.

    Raises:
        Refused: if a part of it cannot be done.
    """
    try:
        return ResponsesRequest.model_validate(without_defaults(body, NO_EFFECT))
    except ValidationError as error:
        raise refusal_of(error) from error
