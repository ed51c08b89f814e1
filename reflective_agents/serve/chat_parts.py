"""The parts of a request to OpenAI's chat completions."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from reflective_agents.state.json_types import JsonObject

Objects: TypeAlias = Annotated[list[JsonObject], Field(fail_fast=True)]
"""A list of a request, of which the first part that is wrong is named; to name each of 40,000 takes long."""


class ChatMessage(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Objects | None = Field(default=None, validate_default=True)
    tool_calls: Objects | None = None
    tool_call_id: str | None = None

    @field_validator("content")
    @classmethod
    def _text_and_images(cls, content: str | Objects | None) -> str | Objects:
        """Join text; a content with images stays a list of parts."""
        parts = [{"type": "text", "text": content or ""}] if content is None or isinstance(content, str) else content
        if unsupported := {part.get("type") for part in parts} - {"text", "image_url"}:
            raise ValueError(f"strategies read text and images, not {', '.join(sorted(map(str, unsupported)))}")
        if not all(map(_is_valid_part, parts)):
            raise ValueError("a part is a text, or an image whose address begins with https:, http: or data:image/")
        is_text = all(part["type"] == "text" for part in parts)
        return "".join(part["text"] for part in parts) if is_text else parts


def _is_valid_part(part: JsonObject) -> bool:
    if part["type"] == "text":
        return isinstance(part.get("text"), str)
    image = part.get("image_url")
    address = image.get("url") if isinstance(image, dict) else None
    return isinstance(address, str) and address.startswith(("https:", "http:", "data:image/"))


class StreamOptions(BaseModel):
    """What a stream reports besides the answer."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class JsonSchema(BaseModel):
    """A JSON schema with its name, which has no effect."""

    model_config = ConfigDict(extra="ignore")

    content: JsonObject = Field(alias="schema")


class ResponseFormat(BaseModel):
    """The form that an answer must have."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _have_a_schema(self) -> Self:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("json_schema stands beside the type json_schema, and there alone")
        return self

    @property
    def answer_schema(self) -> JsonObject | None:
        """The JSON schema that the answer has to fit; None for text."""
        if self.json_schema is not None:
            return self.json_schema.content
        return {"type": "object"} if self.type == "json_object" else None


class NamedFunction(BaseModel):
    """The name of a function."""

    model_config = ConfigDict(extra="ignore")

    name: str


class NamedTool(BaseModel):
    """The tool that a client wants to be called."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["function"]
    function: NamedFunction
