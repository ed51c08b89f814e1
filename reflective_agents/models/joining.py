"""Joining the pieces of a streamed reply, so that it reads like one that came whole."""

from collections.abc import Sequence
from itertools import chain

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    BaseMessageChunk,
    InvalidToolCall,
    ToolCall,
    message_chunk_to_message,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import invalid_tool_call, tool_call

from reflective_agents.models.reply_size import CallPieces, as_written, read_arguments
from reflective_agents.models.thoughts import KEYS, beside
from reflective_agents.models.usage import last_reported


def as_reply(message: BaseMessage) -> AIMessage:
    """Return what a model sent as its reply, whole or a piece, whatever role its server names."""
    if isinstance(message, AIMessage):
        return message
    kind = AIMessageChunk if isinstance(message, BaseMessageChunk) else AIMessage
    return kind(
        content=message.content,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        id=message.id,
    )


def is_empty(chunk: AIMessageChunk) -> bool:
    """Tell whether a piece of a reply adds nothing to it."""
    parts = chunk.content, chunk.tool_call_chunks, chunk.usage_metadata, chunk.chunk_position
    return not any([*parts, *chunk.additional_kwargs.values(), *chunk.response_metadata.values()])


def joined(chunks: Sequence[AIMessageChunk]) -> AIMessage:
    """Join the pieces of a reply.

    Args:
        chunks: The pieces, at least one, in the order in which they came.

    Returns:
        The reply. A call whose arguments are not whole is an invalid one.
    """
    latest: dict[str, str] = {}
    thoughts: dict[str, list[str]] = {name: [] for name in KEYS}
    for chunk in chunks:
        for name, text in chunk.response_metadata.items():
            if isinstance(text, str) and text:
                latest[name] = text
        for name, text in beside(chunk):
            thoughts[name].append(text)
    whole = add_ai_message_chunks(*(_without_texts(chunk) for chunk in chunks))
    reply = message_chunk_to_message(whole)
    assert isinstance(reply, AIMessage)
    # LangChain strings the texts of all pieces together, such as two reasons to finish, and long ones slowly; and it
    # adds the reports of all, where some servers send the counts so far in each.
    reply.response_metadata |= latest
    reply.additional_kwargs |= {name: "".join(texts) for name, texts in thoughts.items() if texts}
    reply.usage_metadata = last_reported(chunks)
    reply.tool_calls, reply.invalid_tool_calls = _calls(chunks, is_cut=was_cut_off(reply))
    return reply


def was_cut_off(reply: AIMessage) -> bool:
    """Return whether a reply ends because it was as long as it may be, in the words of any provider."""
    # OpenAI and Google, Anthropic, Ollama.
    for name in ("finish_reason", "stop_reason", "done_reason"):
        reason = str(reply.response_metadata.get(name)).lower()
        if reason in ("length", "max_tokens"):
            return True
    return False


def _without_texts(chunk: AIMessageChunk) -> AIMessageChunk:
    """Return a piece without the texts and calls that are joined in another way; most have none, and are not copied."""
    if not (chunk.response_metadata or chunk.additional_kwargs or chunk.tool_call_chunks):
        return chunk
    metadata = {name: value for name, value in chunk.response_metadata.items() if not isinstance(value, str)}
    thoughts = {name for name, _ in beside(chunk)}
    extra = {name: value for name, value in chunk.additional_kwargs.items() if name not in thoughts}
    calls: dict[str, list[object]] = {"tool_call_chunks": [], "tool_calls": [], "invalid_tool_calls": []}
    return chunk.model_copy(update={"response_metadata": metadata, "additional_kwargs": extra, **calls})


def _calls(chunks: Sequence[AIMessageChunk], *, is_cut: bool) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """Return the calls of a reply, and those that are invalid. Nothing completes arguments that end too early; of a
    reply that is cut off the last call may have lost all of them."""
    pieces = CallPieces()
    for number, piece in enumerate(chain.from_iterable(chunk.tool_call_chunks for chunk in chunks)):
        # A call without an index is whole.
        index = piece.get("index")
        pieces.take(f"whole {number}" if index is None else index, piece["id"], piece["name"], piece["args"])
    whole = pieces.whole()
    calls: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for number, call in enumerate(whole, 1):
        text = call["args"] or ""
        arguments = read_arguments(text)
        if arguments is None or (is_cut and not text and number == len(whole)):
            invalid.append(invalid_tool_call(name=call["name"], args=as_written(text), id=call["id"]))
        else:
            calls.append(tool_call(name=call["name"] or "", args=arguments, id=call["id"]))
    return calls, invalid
