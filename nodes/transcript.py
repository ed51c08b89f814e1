"""Messages as quoted text, so that a critic or judge reads them as material and the roles cannot be confused."""

import json
import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage


def quoted(tag: str, text: str, **attributes: object) -> str:
    """Put text between tags that it cannot close."""
    names = "".join(f' {name}="{value}"' for name, value in attributes.items())
    body = re.sub(rf"</(?={tag}\b)", r"<\\/", text, flags=re.IGNORECASE)
    return f"<{tag}{names}>\n{body}\n</{tag}>"


def request_text(conversation: Sequence[BaseMessage]) -> str:
    """The request of a conversation: its last message, preceded by the earlier turns where there are any."""
    *earlier, question = conversation
    turns = [f"{message.type}: {message.text}" for message in earlier if message.text]
    context = quoted("conversation", "\n".join(turns)) + "\n" if turns else ""
    return context + quoted("request", question.text)


def steps_text(messages: Sequence[BaseMessage]) -> str:
    """The steps of a trajectory: thoughts, actions, observations, answers, each in its tags."""
    return "\n".join(part for message in messages for part in _parts(message))


def _parts(message: BaseMessage) -> list[str]:
    if isinstance(message, ToolMessage):
        return [quoted("observation", message.text)]
    if isinstance(message, HumanMessage):
        return [message.text]
    if not isinstance(message, AIMessage) or not message.tool_calls:
        return [quoted("answer", message.text)]
    thought = [quoted("thought", message.text)] if message.text else []
    calls = [f"{call['name']}({json.dumps(call['args'], ensure_ascii=False)})" for call in message.tool_calls]
    return [*thought, *(quoted("action", call) for call in calls)]
