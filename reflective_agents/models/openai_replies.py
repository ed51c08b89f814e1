"""Replies that OpenAI's client reads beside the event loop: it takes long for each object that a server sends."""

import asyncio
from typing import Any

from openai import AsyncOpenAI

from reflective_agents.state.reply_bytes import read_in_events

MANY_SIGNS = 1_000
"""Commas and braces of a reply from which on it is read in a thread."""


def read_beside_loop(client: AsyncOpenAI) -> None:
    """Let a client read replies of many parts in a thread, and no more choices than were asked for.

    Args:
        client: Is changed. Replies that it reads itself, as it does if nobody asks for the raw ones, are read on the
            event loop as before.
    """
    request = client.request

    async def reading(cast_to: Any, options: Any, **how: Any) -> Any:
        reply: Any = await request(cast_to, options, **how)
        if how.get("stream"):
            read_in_events(getattr(reply, "http_response", None) or reply.response)
        elif hasattr(reply, "http_response") and _signs(reply.http_response.content) > MANY_SIGNS:
            await asyncio.to_thread(_read, reply, (options.json_data or {}).get("n") or 1)
        return reply

    client.request = reading  # type: ignore[method-assign]


def _read(reply: Any, most: int) -> None:
    """Read a raw reply, which keeps what it has read."""
    choices = getattr(reply.parse(), "choices", None)
    if isinstance(choices, list):
        del choices[most:]


def _signs(body: bytes) -> int:
    return body.count(b",") + body.count(b"{")
