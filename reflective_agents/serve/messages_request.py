"""Requests to Anthropic's messages, read and checked, and what they come to as a request to the chat completions."""

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, field_validator

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.serve.chat_request import ChatRequest, Effort, refusal_of
from reflective_agents.state.json_types import JsonObject

_NO_EFFECT = (
    "cache_control",
    "diagnostics",
    "inference_geo",
    "metadata",
    "service_tier",
    "speed",
    "user_profile_id",
    "workspace_id",
)
_LOW, _MEDIUM = 4_096, 16_384
"""Tokens of thinking up to which the effort is low, or medium."""


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Text(_Lenient):
    """A text."""

    type: Literal["text"]
    text: str


class Source(_Lenient):
    """Where an image comes from."""

    type: Literal["base64", "url"]
    url: str | None = None
    media_type: str | None = None
    data: str | None = None

    @property
    def address(self) -> str:
        """The address of the image."""
        return self.url or f"data:{self.media_type};base64,{self.data}"


class Image(_Lenient):
    """An image."""

    type: Literal["image"]
    source: Source


class PlainText(_Lenient):
    """The text of a document."""

    type: Literal["text"]
    data: str


class Document(_Lenient):
    """A document of text, with what the client says of it."""

    type: Literal["document"]
    source: PlainText
    title: str | None = None
    context: str | None = None

    @property
    def text(self) -> str:
        """The document as a model is shown it."""
        about = {"title": self.title, "context": self.context}
        given = {name: text for name, text in about.items() if text}
        return f"{quoted('document', self.source.data, **given)}\n"


class ToolUse(_Lenient):
    """A call that the client was asked to carry out."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: JsonObject


class ToolResult(_Lenient):
    """What a call of the client's has brought."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[Text] = ""

    @property
    def text(self) -> str:
        """The result as text."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class Thought(_Lenient):
    """What an earlier answer has thought: a model is not shown it again."""

    type: Literal["thinking", "redacted_thinking"]


Block = Annotated[Text | Image | Document | ToolUse | ToolResult | Thought, Field(discriminator="type")]


def _form(content: object) -> str:
    return "text" if isinstance(content, str) else "blocks"


class Message(_Lenient):
    """A message of the conversation."""

    role: Literal["user", "assistant"]
    # Of blocks, what is wrong with a block is told, and not that they are no text.
    content: Annotated[Annotated[str, Tag("text")] | Annotated[list[Block], Tag("blocks")], Discriminator(_form)]

    def as_chat(self) -> Iterator[JsonObject]:
        """Yield the messages that chat completions have for it: one for each result, then the rest."""
        if isinstance(self.content, str):
            yield {"role": self.role, "content": self.content}
            return
        parts: list[JsonObject] = []
        calls: list[JsonObject] = []
        for block in self.content:
            if isinstance(block, ToolResult):
                yield {"role": "tool", "tool_call_id": block.tool_use_id, "content": block.text}
            elif isinstance(block, ToolUse):
                function = {"name": block.name, "arguments": json.dumps(block.input, ensure_ascii=False)}
                calls.append({"id": block.id, "type": "function", "function": function})
            elif isinstance(block, (Text, Document)):
                parts.append({"type": "text", "text": block.text})
            elif isinstance(block, Image):
                parts.append({"type": "image_url", "image_url": {"url": block.source.address}})
        if parts or calls:
            yield {"role": self.role, "content": parts, **({"tool_calls": calls} if calls else {})}


class ToolChoice(_Lenient):
    """How tools are to be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str = ""
    disable_parallel_tool_use: bool = False

    def as_chat(self) -> str | JsonObject:
        """Return it as chat completions have it."""
        if self.type == "tool":
            return {"type": "function", "function": {"name": self.name}}
        return "required" if self.type == "any" else self.type


class Thinking(_Lenient):
    """Whether the client reads what is thought, and how much that may be."""

    type: Literal["enabled", "adaptive", "disabled"]
    budget_tokens: int | None = None

    @property
    def effort(self) -> Effort | None:
        """The effort that the budget comes to."""
        if self.budget_tokens is None or self.type != "enabled":
            return None
        return "low" if self.budget_tokens <= _LOW else "medium" if self.budget_tokens <= _MEDIUM else "high"


class Form(_Lenient):
    """The form that an answer must have."""

    type: Literal["json_schema"]
    content: JsonObject = Field(alias="schema")


class Output(_Lenient):
    """How an answer is written."""

    effort: Effort | None = None
    format: Form | None = None


class MessagesRequest(BaseModel):
    """The body of POST /v1/messages.

    Beyond Anthropic's own fields it has the `settings` of the strategy, and `on_disconnect`, as chat completions have.
    """

    model_config = ConfigDict(extra="forbid")

    model: str
    max_tokens: int
    messages: list[Message] = Field(min_length=1)
    system: str | list[Text] = ""
    stream: bool = False
    stop_sequences: list[str] = Field(default_factory=list)
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    tools: list[JsonObject] = Field(default_factory=list)
    tool_choice: ToolChoice = ToolChoice(type="auto")
    thinking: Thinking = Thinking(type="disabled")
    output_config: Output = Output()
    settings: JsonObject = Field(default_factory=dict)
    on_disconnect: Literal["cancel", "continue"] = "cancel"

    @field_validator("tools")
    @classmethod
    def _are_clients_own(cls, tools: list[JsonObject]) -> list[JsonObject]:
        if others := sorted({str(tool.get("type")) for tool in tools} - {"custom", "None"}):
            raise ValueError(f"tools are the client's own; this server runs no {', '.join(others)}")
        return tools

    def chat(self) -> ChatRequest:
        """Return the request as one to the chat completions.

        Raises:
            Refused: if a part of it cannot be done there.
        """
        system = self.system if isinstance(self.system, str) else "\n\n".join(part.text for part in self.system)
        instructions = [{"role": "system", "content": system}] if system else []
        form = self.output_config.format
        fields: JsonObject = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": [*instructions, *(part for message in self.messages for part in message.as_chat())],
            "stream": self.stream,
            "stop": self.stop_sequences,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "tools": [_chat_tool(tool) for tool in self.tools],
            "tool_choice": self.tool_choice.as_chat(),
            "parallel_tool_calls": not self.tool_choice.disable_parallel_tool_use,
            "reasoning_effort": self.output_config.effort or self.thinking.effort,
            "response_format": form and {"type": "json_schema", "json_schema": {"schema": form.content}},
            "settings": self.settings,
            "on_disconnect": self.on_disconnect,
        }
        effort = "output_config.effort" if self.output_config.effort else "thinking.budget_tokens"
        names = {"parallel_tool_calls": "tool_choice.disable_parallel_tool_use", "reasoning_effort": effort}
        return ChatRequest.of(fields, names)


def _chat_tool(tool: JsonObject) -> JsonObject:
    names = {"name": "name", "description": "description", "input_schema": "parameters"}
    function = {ours: tool[name] for name, ours in names.items() if tool.get(name) is not None}
    return {"type": "function", "function": function}


def parse(body: JsonObject) -> MessagesRequest:
    """Return the request that a body holds.

    Raises:
        Refused: if a part of it cannot be done.
    """
    given = {name: value for name, value in body.items() if value is not None and name not in _NO_EFFECT}
    try:
        return MessagesRequest.model_validate(given)
    except ValidationError as error:
        raise refusal_of(error) from error
