"""The signs by which chat templates part the turns of a conversation, such as `<|im_start|>system`.

Servers of local models read them wherever they stand, also in a document, which could so begin a turn of its own.
In what is sent they are broken by a backslash.
"""

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.state.json_types import JsonObject

_SIGN = re.compile(
    # ChatML and Llama 3 (<|...|>), DeepSeek with full-width bars, Gemma (<start_of_turn>), Llama 2 (<<SYS>>).
    r"<(?=[|\uff5c][^\s<>|\uff5c]{1,40}[|\uff5c]>|/?(?:start|end)_(?:of_turn|header_id)>|</?SYS>>)"
    # Mistral.
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)
# Looked for first: plain search is far quicker than the expression on a long prompt.
_HINTS = ("<|", "<\uff5c", "_of_turn>", "_header_id>", "SYS>>", "INST]", "SYSTEM_PROMPT]", "TOOL")


def escape_turn_signs(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a prompt in whose texts no sign begins or ends a turn; messages without one are returned as they are."""
    return [_within(message) for message in messages]


def _within(message: BaseMessage) -> BaseMessage:
    changed: JsonObject = {}
    if (content := _broken(message.content)) != message.content:
        changed["content"] = content
    if isinstance(message, AIMessage) and (calls := _broken(message.tool_calls)) != message.tool_calls:
        changed["tool_calls"] = calls
    return message.model_copy(update=changed) if changed else message


def _broken(value: Any) -> Any:
    """Break the signs in all texts of plain data."""
    if isinstance(value, str):
        return _SIGN.sub(lambda sign: f"{sign[0]}\\", value) if any(hint in value for hint in _HINTS) else value
    if isinstance(value, list):
        return [_broken(item) for item in value]
    if isinstance(value, dict):
        return {name: _broken(item) for name, item in value.items()}
    return value
