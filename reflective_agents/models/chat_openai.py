"""OpenAI's chat completions as other servers speak them: with thoughts beside the answers, or before them in tags."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from openai import BaseModel

from reflective_agents.models.reply_size import LONGEST_THOUGHT, CallPieces
from reflective_agents.models.thoughts import KEY, KEYS
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.parameters import BEYOND_OPENAI
from reflective_agents.text.thinking import ThoughtFilter

_PIECES = "pieces of calls"
"""Where a piece of a stream keeps those of its calls until they are whole."""


class CompatibleChatOpenAI(ChatOpenAI):
    """ChatOpenAI that keeps what a model thought, sends it back with its tool calls, and never streams it."""

    def _create_chat_result(
        self, response: JsonObject | BaseModel, generation_info: JsonObject | None = None
    ) -> ChatResult:
        # It is the assistant's, whatever role the server names.
        for choice in getattr(response, "choices", None) or ():
            message = getattr(choice, "message", None)
            if isinstance(message, BaseModel):
                message.role = "assistant"  # type: ignore[attr-defined]
        result = super()._create_chat_result(response, generation_info)
        # Servers add fields and types that OpenAI's classes do not have, of which pydantic would warn.
        data = response if isinstance(response, dict) else response.model_dump(warnings=False)
        for generation, choice in zip(result.generations, data.get("choices") or [], strict=False):
            if thought := _thought(choice.get("message") or {}):
                generation.message.additional_kwargs[KEY] = thought
        if result.generations:
            _keep_usage(result.generations[0].message, data)
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: JsonObject, default_chunk_class: type, base_generation_info: JsonObject | None
    ) -> ChatGenerationChunk | None:
        # Usage has to be in place before LangChain converts the piece: it reads `usage` only.
        chunk, pieces = _without_calls(_with_usage(chunk))
        converted = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if converted is None:
            return None
        choices = chunk.get("choices")
        thought = _thought(choices[0].get("delta") or {}) if choices else ""
        if thought:
            converted.message.additional_kwargs[KEY] = thought
        _keep_usage(converted.message, chunk)
        if pieces:
            converted.message.additional_kwargs[_PIECES] = pieces
        return converted

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        # What comes in many pieces is joined here: LangChain takes ever longer for each that it adds.
        filtered = ThoughtFilter()
        calls = CallPieces()
        thoughts: list[str] = []
        left = LONGEST_THOUGHT
        async for chunk in super()._astream(*args, **kwargs):
            for piece in chunk.message.additional_kwargs.pop(_PIECES, ()):
                function = piece.get("function") or {}
                calls.take(piece.get("index"), piece.get("id"), function.get("name"), function.get("arguments"))
            thoughts.append(chunk.message.additional_kwargs.pop(KEY, "")[:left])
            left -= len(thoughts[-1])
            if isinstance(chunk.message.content, str) and chunk.message.content:
                chunk.message.content = filtered.feed(chunk.message.content)
                chunk.text = chunk.message.content
            yield chunk
        rest = AIMessageChunk(content=filtered.end(), tool_call_chunks=calls.joined())
        if thought := filtered.thought or "".join(thoughts):
            rest.additional_kwargs[KEY] = thought
        if rest.content or rest.additional_kwargs or rest.tool_call_chunks:
            yield ChatGenerationChunk(message=rest)

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> JsonObject:
        payload = super()._get_request_payload(input_, stop=stop, **kwargs)
        messages = self._convert_input(input_).to_messages()
        for message, sent in zip(messages, payload.get("messages") or [], strict=False):
            # Models that think between their calls, such as DeepSeek's, have to be sent that thought again;
            # answers go without.
            if isinstance(message, AIMessage) and message.tool_calls and KEY in message.additional_kwargs:
                sent[KEY] = message.additional_kwargs[KEY]
        if "max_completion_tokens" in payload and "api.openai.com" not in str(self.root_async_client.base_url):
            payload["max_tokens"] = payload.pop("max_completion_tokens")  # the name that all servers know
        if beyond := {name: payload.pop(name) for name in BEYOND_OPENAI if name in payload}:
            payload["extra_body"] = {**beyond, **(payload.get("extra_body") or {})}
        return payload


def _with_usage(chunk: JsonObject) -> JsonObject:
    """Return a piece of a stream with its usage where OpenAI has it. Groq sends it under a name of its own."""
    groq = chunk.get("x_groq")
    if chunk.get("usage") or not groq or not groq.get("usage"):
        return chunk
    return {**chunk, "usage": groq["usage"]}


def _without_calls(chunk: JsonObject) -> tuple[JsonObject, Sequence[JsonMapping]]:
    """Return a piece of a stream without the pieces of its calls, and these. It is the assistant's, whatever role the
    server names."""
    choices = chunk.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    if not delta.get("tool_calls") and "role" not in delta:
        return chunk, ()
    without = {name: value for name, value in delta.items() if name not in ("tool_calls", "role")}
    changed = {**choices[0], "delta": {"role": "assistant", **without}}
    return {**chunk, "choices": [changed]}, delta.get("tool_calls") or ()


def _keep_usage(message: BaseMessage, data: JsonObject) -> None:
    """Keep what LangChain does not read of a usage: what a router of many providers says that a call has cost, in
    dollars, and DeepSeek's name for what it had in its cache. The costs of the pieces of a stream form a list."""
    usage = data.get("usage") or {}
    if isinstance(message, AIMessage) and message.usage_metadata and usage.get("prompt_cache_hit_tokens"):
        message.usage_metadata.setdefault("input_token_details", {})["cache_read"] = usage["prompt_cache_hit_tokens"]
    if isinstance(usage.get("cost"), int | float):
        # A list, since LangChain joins lists of several pieces and refuses to merge two unequal floats.
        message.response_metadata["costs"] = [usage["cost"]]


def _thought(message: JsonObject) -> str:
    for field in KEYS:
        thought = message.get(field)
        if isinstance(thought, str):
            return thought
    return ""
