"""The live page's view of a thread, while its run ends."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest
from starlette.applications import Starlette

from reflective_agents.serve import live


class Ending:
    """A server on which a run ends while it is asked about it."""

    def __init__(self, _: Any) -> None:
        self.ended = False

    async def last_run(self, _: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        self.ended = True
        return {"run_id": "1", "status": "success"}

    async def state(self, _: str) -> dict[str, Any]:
        values = {"strategy": "reflection", "messages": [], "outcome": {"status": "solved", "reason": "accepted"}}
        return {"values": values if self.ended else {}, "next": [], "tasks": []}


async def test_a_run_that_ends_meanwhile_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "ServerApi", Ending)
    transport = httpx.ASGITransport(Starlette(routes=live.routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        shown = (await client.get(f"/live/threads/{uuid4()}")).json()
    assert (shown["strategy"], shown["status"]) == ("reflection", "ended")
