"""What servers report that a call has taken. Each reports in a form of its own, and some wrongly.

docs/models.md has the table of forms; `tests/models/test_usage.py` reads each of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import UsageMetadata, add_usage

from reflective_agents.state.json_types import JsonMapping


class Tokens(NamedTuple):
    """Tokens of a call, 0 for what was not reported.

    Attributes:
        input: Of the prompt.
        output: Of the answers, thoughts included.
        cached: Of the input, those that the provider had in its cache.
        written: Of the input, those that it has put into its cache.
        thought: Of the output, those of thoughts.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    thought: int = 0


def reported(replies: Sequence[AIMessage]) -> Tokens:
    """Read the report on a call, which is that of its first reply.

    A thought that is reported beside the output (by xAI and Gemini) shows in the total, or is longer than the output.
    """
    used = replies[0].usage_metadata if replies else None
    if not used:
        return Tokens()
    prompt, output, total = (_count(used[name]) for name in ("input_tokens", "output_tokens", "total_tokens"))
    thought = _detail(used.get("output_token_details"), "reasoning")
    return Tokens(
        input=prompt,
        # Without a count of the prompt the total says nothing of the output.
        output=max(output, total - prompt if prompt else 0, output + thought if thought > output else 0),
        cached=_detail(used.get("input_token_details"), "cache_read"),
        written=_detail(used.get("input_token_details"), "cache_creation", "_input_tokens"),
        thought=thought,
    )


def last_reported(chunks: Iterable[AIMessageChunk]) -> UsageMetadata | None:
    """Return the usage of a stream, which is reported once, in parts, or in each piece anew.

    A report that counts the prompt again counts everything again, and replaces those before it.
    """
    whole: UsageMetadata | None = None
    for chunk in chunks:
        if part := chunk.usage_metadata:
            whole = part if part["input_tokens"] else add_usage(whole, part)
    return whole


def is_cached(replies: Sequence[AIMessage]) -> bool:
    """Tell whether LangChain's own cache has answered, which marks what it returns as free."""
    used: JsonMapping = {**(replies[0].usage_metadata or {})} if replies else {}
    return used.get("total_cost") == 0


def _detail(details: Mapping[str, object] | None, *names: str) -> int:
    """Add up the details whose names end so: a tier of service stands before them, such as `flex_cache_read`."""
    counts = [count for name, count in (details or {}).items() if name.endswith(names)]
    return sum(map(_count, counts))


def _count(value: object) -> int:
    """Read a number of tokens; what is none, such as NaN, says nothing: a sum with it would be below every limit."""
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return max(int(value), 0) if is_number else 0  # type: ignore[call-overload]
