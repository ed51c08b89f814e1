"""The items of which the input of a response consists, as a request has them and as OpenAI lists them."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from reflective_agents.serve.chat_parts import Objects
from reflective_agents.state.json_types import JsonObject

_OF_RESPONSES = ("msg_", "rs_", "fc_")
_TEXTS = ("input_text", "output_text", "text", "refusal")


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Message(_Part):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | Objects

    @field_validator("content")
    @classmethod
    def _as_in_chat(cls, content: str | Objects) -> str | Objects:
        return content if isinstance(content, str) else [_chat_part(part) for part in content]


class FunctionCall(_Part):
    """A call that the client was asked to carry out."""

    call_id: str
    name: str
    arguments: str
    namespace: str | None = None


class FunctionCallOutput(_Part):
    """What a call of the client's has brought."""

    call_id: str
    output: str | Objects

    @field_validator("output")
    @classmethod
    def _as_text(cls, output: str | Objects) -> str:
        parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
        if not all(part.get("type") in _TEXTS and isinstance(part.get("text"), str) for part in parts):
            raise ValueError("the output of a function is text")
        return "".join(str(part["text"]) for part in parts)


class Reasoning(_Part):
    """What an earlier response has thought: a model is not shown it again."""

    summary: list[JsonObject] = Field(default_factory=list)


class ItemReference(_Part):
    """An item of an earlier response, by its id."""

    id: str

    @field_validator("id")
    @classmethod
    def _is_of_a_response(cls, key: str) -> str:
        if not key.startswith(_OF_RESPONSES):
            raise ValueError(f"{key!r} is no item of a response: send the item itself")
        return key


def _chat_part(part: JsonObject) -> JsonObject:
    """Return a part of a message as chat completions have it.

    Raises:
        ValueError: if no strategy reads it.
    """
    kind = part.get("type")
    if kind in _TEXTS:
        return {"type": "text", "text": part.get("text", part.get("refusal"))}
    if kind == "input_image" and "image_url" in part:
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    raise ValueError(f"strategies read text, and images by their address, not {kind}")


def kind_of(item: object) -> str:
    """Return the type of an item, which may leave out that it is a message, or a reference."""
    if not isinstance(item, Mapping):
        return "message"
    return str(item.get("type") or ("message" if "role" in item else "item_reference"))


Item = Annotated[
    Annotated[Message, Tag("message")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionCallOutput, Tag("function_call_output")]
    | Annotated[Reasoning, Tag("reasoning")]
    | Annotated[ItemReference, Tag("item_reference")],
    Discriminator(kind_of),
]
"""An item of the input."""


def as_item(item: Message | FunctionCall | FunctionCallOutput | Reasoning | ItemReference) -> JsonObject | None:
    """Return an item of the input as OpenAI lists it; None for a reference to what no model is shown."""
    if isinstance(item, Message):
        parts = [{"type": "text", "text": item.content}] if isinstance(item.content, str) else item.content
        content = [_item_part(part, item.role) for part in parts]
        return {"type": "message", "role": item.role, "content": content, "status": "completed"}
    if isinstance(item, FunctionCall):
        return {"type": "function_call", **item.model_dump(exclude_none=True), "status": "completed"}
    if isinstance(item, FunctionCallOutput):
        return {"type": "function_call_output", **item.model_dump(), "status": "completed"}
    return {"type": "reasoning", "summary": item.summary} if isinstance(item, Reasoning) else None


def _item_part(part: JsonObject, role: str) -> JsonObject:
    """Return a part of a message of chat completions as responses have it."""
    if part["type"] == "image_url":
        return {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
    if role == "assistant":
        return {"type": "output_text", "text": part["text"], "annotations": []}
    return {"type": "input_text", "text": part["text"]}
