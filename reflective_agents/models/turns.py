"""The signs by which chat templates part the turns of a conversation, such as `<|im_start|>system`.

Servers of local models read them wherever they stand, also in a document, which could so begin a turn of its own.
In what is sent they are broken by a backslash.
"""

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.state.json_types import JsonObject

_TAGS = (
    # Sequences: Llama 2, T5, Gemma, GLM, Phi, Seed; and what tokenizers keep free.
    r"s|bos|eos|pad|unk|mask|sop|eop|seed:\w+|extra_id_\d+|SPECIAL_\d+|reserved_\d+|unused\d+"
    # Turns: Gemma, Llama 3, SmolVLM.
    r"|(?:start|end)_(?:of_turn|header_id|of_utterance)"
    # Thoughts and calls: Qwen, DeepSeek, GLM, Hermes.
    r"|think|tool_calls?|tool_responses?|tools|arg_key|arg_value"
)
_BRACKETS = (
    # Mistral.
    "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|THINK|IMG|IMG_BREAK|IMG_END"
    "|PREFIX|MIDDLE|SUFFIX|MODEL_SETTINGS"
    # GLM.
    "|gMASK|sMASK"
)
_SIGN = re.compile(
    # ChatML, Llama 3, Phi (<|...|>), DeepSeek with full-width bars, Gemma 4 (<|turn>, <turn|>), Llama 2 (<<SYS>>).
    r"<(?=[|\uff5c][^\s<>|\uff5c](?:[^<>|\uff5c\n]{0,38}[^\s<>|\uff5c])?[|\uff5c]>|\|\w{1,40}>|\w{1,40}\|>|</?SYS>>"
    # Orion and Seed (<[begin▁of▁sentence]>).
    rf"|\[[^\s\[\]<>]{{1,40}}\]>|/?(?:{_TAGS})>)"
    # MiniMax (]<]minimax[>[).
    rf"|\[(?=/?(?:{_BRACKETS})\])|\](?=<\]\w{{1,40}}\[>\[)"
)
"""docs/security.md names the families, and says how the list is kept up to date."""


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
        return _SIGN.sub(lambda sign: f"{sign[0]}\\", value)
    if isinstance(value, list):
        return [_broken(item) for item in value]
    if isinstance(value, dict):
        return {name: _broken(item) for name, item in value.items()}
    return value
