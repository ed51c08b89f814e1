"""Replies that OpenAI's client reads beside the event loop: it takes long for each object that a server sends."""

import asyncio
import json
from typing import Any

import httpx2
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
            read_in_events(getattr(reply, "http_response", None) or getattr(reply, "response", None))
        elif hasattr(reply, "http_response") and _signs(reply.http_response.content) > MANY_SIGNS:
            body = options.json_data if isinstance(options.json_data, dict) else {}
            await asyncio.to_thread(_read, reply, body.get("n") or 1)
        return reply

    client.request = reading  # type: ignore[method-assign]


def _read(reply: Any, most: int) -> None:
    """Read a raw reply, which keeps what it has read. What is too much is left out before it is made to objects."""
    response = reply.http_response
    try:
        data = json.loads(response.content)
    except ValueError:  # the client says so
        return
    choices = data.get("choices") if isinstance(data, dict) else None
    if isinstance(choices, list) and len(choices) > most:
        content = json.dumps({**data, "choices": choices[:most]}).encode()
        kept = [(name, value) for name, value in response.headers.items() if name != "content-length"]
        reply.http_response = httpx2.Response(response.status_code, headers=kept, content=content)
        reply.http_response.request = response.request
    reply.parse()


def _signs(body: bytes) -> int:
    return body.count(b",") + body.count(b"{")
