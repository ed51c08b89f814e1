"""What models think before they answer: taken out of their replies, whatever form it has."""

from collections.abc import Iterator
from itertools import groupby
from typing import TypeVar

from langchain_core.messages import AIMessage

from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.clean import clean, clean_data
from reflective_agents.text.thinking import split_thought

KEY = "reasoning_content"
"""Where a message keeps what its model thought, as the servers call it that tell it apart from the answer."""
KEYS = (KEY, "reasoning")
"""What servers call the thought that they send beside an answer."""
M = TypeVar("M", bound=AIMessage)


def with_thought_apart(reply: M) -> M:
    """Return a reply, or a piece of one, in which no thought is taken for text: Gemini marks texts as thoughts."""
    if not isinstance(reply.content, list) or not any(map(_is_marked, reply.content)):
        return reply
    return reply.model_copy(update={"content": [_apart(block) for block in reply.content]})


def _apart(block: str | JsonObject) -> str | JsonObject:
    if isinstance(block, dict) and _is_marked(block):
        return {"type": "thinking", "thinking": block.get("text", "")}
    return block


def _is_marked(block: str | JsonObject) -> bool:
    return isinstance(block, dict) and block.get("thought") is True


def without_thought(reply: AIMessage) -> AIMessage:
    """Move a reply's thought beside it, and remove what cannot be stored."""
    reply = with_thought_apart(reply)
    answer, in_tags = split_thought(reply.text)
    thought = in_tags or thought_of(reply)
    # Blocks stay: with some providers they carry signatures without which the next request is refused.
    content = clean(answer) if isinstance(reply.content, str) or in_tags else reply.content
    if thought and isinstance(content, str):
        content = content.strip()  # as after a thought in tags, which streams bring beside the answer
    extra = {**reply.additional_kwargs, KEY: thought} if thought else reply.additional_kwargs
    calls = [clean_data(call) for call in reply.tool_calls]
    return reply.model_copy(update={"content": content, "additional_kwargs": extra, "tool_calls": calls})


def thought_of(reply: AIMessage) -> str:
    """Return what a model thought, as far as the reply reveals it."""
    if thoughts := [text for _, text in beside(reply) if text]:
        return thoughts[0]
    return "\n".join(_thoughts(reply.content)) if isinstance(reply.content, list) else ""


def beside(reply: AIMessage) -> list[tuple[str, str]]:
    """Return the thoughts beside a reply's content, each with the name of its field."""
    fields = ((name, reply.additional_kwargs.get(name)) for name in KEYS)
    return [(name, text) for name, text in fields if isinstance(text, str)]


def _thoughts(content: list[str | JsonObject]) -> Iterator[str]:
    """Yield the thoughts among the blocks of a reply; neighbours are pieces of one thought."""
    for is_thought, texts in groupby(map(thought_in, content), bool):
        if is_thought:
            yield "".join(texts)


def thought_in(block: str | JsonObject) -> str:
    """Return the thought of a block: Anthropic's, LangChain's own, or the summaries of OpenAI's responses."""
    if isinstance(block, str):
        return ""
    text = block.get("thinking") or block.get("reasoning")
    summaries = block.get("summary") if block.get("type") == "reasoning" else None
    if isinstance(summaries, list):
        parts = [part for part in summaries if isinstance(part, dict)]
        text = text or "\n".join(str(part.get("text") or "") for part in parts)
    return text if isinstance(text, str) else ""
