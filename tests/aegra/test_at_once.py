"""How many runs of one user are under way at a time: exactly as many as allowed, over two processes."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from tests.aegra.conftest import Start
from tests.aegra.process import KEYS, Server

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(400)]

MOST = 3


@pytest.fixture(scope="module")
def pair(servers: list[Server], settings: dict[str, str], start: Start) -> Iterator[list[Server]]:
    """Start two processes that let so many runs of a user in, with a queue of their own."""
    with TemporaryDirectory() as folder:
        rules = Path(folder) / "policy.json"
        rules.write_text(json.dumps({"runs_at_once": MOST}))
        own = {"REFLECT_POLICY": str(rules), "REDIS_URL": settings["REDIS_URL"].replace("/0", "/2")}
        pair = [start(**own), start(**own)]
        for server in pair:
            server.wait_until_ready()
        yield pair
        for server in pair:
            server.end()


LONG = {"model": "lats", "settings": {"search": "none", "n": 1, "max_expansions": 6}}
SHORT = {"model": "chain_of_thought"}


async def ask(server: Server, number: int, user: str = "ann", run: dict[str, Any] = SHORT) -> int:
    """Return the status of a completion of one call, which takes half a second, or of many."""
    body = {"messages": [{"role": "user", "content": f"A slow and unsolvable question {number}"}], **run}
    headers = {"authorization": f"Bearer {KEYS[user]}"}
    async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=120) as http:
        return (await http.post("/v1/chat/completions", json=body)).status_code


async def test_a_burst_gets_in_as_far_as_is_allowed_and_a_refusal_leaves_nothing(pair: list[Server]) -> None:
    for _ in range(2):
        got = await asyncio.gather(*(ask(pair[number % 2], number, run=LONG) for number in range(12)))
        assert sorted(got) == [200] * MOST + [429] * (12 - MOST)


async def test_a_pool_that_obeys_is_never_refused(pair: list[Server]) -> None:
    waiting = iter(range(3 * MOST))

    async def work() -> list[int]:
        return [await ask(pair[number % 2], number) for number in waiting]

    got = await asyncio.gather(*(work() for _ in range(MOST)))
    assert [status for statuses in got for status in statuses] == [200] * 3 * MOST


async def test_users_do_not_count_for_each_other(pair: list[Server]) -> None:
    requests = [(number, user) for number in range(MOST) for user in KEYS]
    assert {*await asyncio.gather(*(ask(pair[number % 2], number, user) for number, user in requests))} == {200}


async def test_of_several_first_runs_on_a_thread_one_begins(pair: list[Server]) -> None:
    thread = "6f6b6c1e-0000-4000-8000-00000000000a"
    run = {
        "assistant_id": "chain_of_thought",
        "input": {"messages": [{"role": "user", "content": "Why?"}]},
        "if_not_exists": "create",
    }

    async def begin(server: Server) -> int:
        headers = {"authorization": f"Bearer {KEYS['bob']}"}
        async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=120) as http:
            return (await http.post(f"/threads/{thread}/runs", json=run)).status_code

    got = await asyncio.gather(*(begin(pair[number % 2]) for number in range(6)))
    assert sorted(got) == [200] + [409] * 5
