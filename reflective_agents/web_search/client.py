"""HTTP clients for services that are asked for data."""

from typing import Any

import httpx

from reflective_agents.state import reply_bytes
from reflective_agents.state.errors import SearchFailed
from reflective_agents.web_search.certificates import certificates


async def client(address: str = "", *, headers: dict[str, str] | None = None, **options: Any) -> httpx.AsyncClient:
    """Make a client that reads no more of a reply than is of use.

    Args:
        address: The only host to which it goes, also when redirected: another one may be for this machine alone. Empty
            for a client that follows no redirect.
        headers: Of each request.
        options: Of httpx's client.
    """

    async def stay(request: httpx.Request) -> None:
        own = httpx.URL(address)
        if address and (request.url.host, request.url.port) != (own.host, own.port):
            raise SearchFailed(f"{own.host} redirects to {request.url.host}: if that is right, set its address to it.")

    return httpx.AsyncClient(
        headers={**reply_bytes.ASKING, **(headers or {})},
        verify=await certificates(),
        follow_redirects=bool(address),
        event_hooks={"request": [stay], "response": [reply_bytes.bounded]},
        **options,
    )
