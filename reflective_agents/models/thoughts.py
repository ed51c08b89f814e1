"""What models think before they answer: taken out of their replies, whatever form it has."""

from langchain_core.messages import AIMessage

from reflective_agents.text.clean import clean, clean_data
from reflective_agents.text.thinking import split_thought

KEY = "reasoning_content"
"""Where a message keeps what its model thought, as the servers call it that tell it apart from the answer."""


def without_thought(reply: AIMessage) -> AIMessage:
    """Move a reply's thought beside it, and remove what cannot be stored."""
    answer, in_tags = split_thought(reply.text)
    beside = thought_of(reply)
    content = clean(answer) if isinstance(reply.content, str) or in_tags else reply.content
    if beside and isinstance(content, str):
        content = content.strip()  # as after a thought in tags, which streams bring beside the answer
    extra = {**reply.additional_kwargs, KEY: in_tags or beside} if in_tags or beside else reply.additional_kwargs
    calls = [clean_data(call) for call in reply.tool_calls]
    return reply.model_copy(update={"content": content, "additional_kwargs": extra, "tool_calls": calls})


def thought_of(reply: AIMessage) -> str:
    """Return what a model thought, as far as the reply reveals it."""
    thought = reply.additional_kwargs.get(KEY) or reply.additional_kwargs.get("reasoning")
    if isinstance(thought, str) and thought:
        return thought
    blocks = reply.content if isinstance(reply.content, list) else []
    texts = [block.get("thinking") or block.get("reasoning") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))
