"""What users may and may not do, on a development server that asks for keys."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import websockets
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.serve import gate, live, rights, routes
from tests.studio.conftest import free_port, running, wait_until_ready

pytestmark = [pytest.mark.studio, pytest.mark.thorough, pytest.mark.xdist_group("studio")]


SOCKET = ("ANY", "/threads/{thread_id}/stream/events")
"""A web socket, whose commands are tested below."""


@pytest.fixture(scope="module")
def guarded(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server that asks for keys, and return its address."""
    folder, port = tmp_path_factory.mktemp("guarded"), free_port()
    quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true", "LANGSMITH_TRACING": "false"}
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    command += ["--n-jobs-per-worker", "20", "--port", str(port)]
    log = folder / "server.log"
    with (
        log.open("wb") as output,
        running(command, checkout, quiet | rights.settings(folder), output.fileno()) as process,
    ):
        wait_until_ready(process, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
async def clients(guarded: str) -> AsyncIterator[rights.Clients]:
    async with AsyncExitStack() as stack:
        made: dict[str, LangGraphClient] = {}
        for user, key in rights.KEYS.items():
            client = get_client(url=guarded, headers={"authorization": f"Bearer {key}"})
            made[user] = await stack.enter_async_context(client)
        yield lambda user: made[user]


async def test_nobody_sees_what_is_anothers_on_the_live_page(guarded: str) -> None:
    ann, bob = (live.browser(guarded, rights.KEYS[user]) for user in ("ann", "bob"))
    async with ann, bob:
        await live.nobody_sees_what_is_anothers(ann, bob)


async def test_nobody_writes_what_limits_rest_on(clients: rights.Clients, guarded: str) -> None:
    await gate.nobody_writes_what_limits_rest_on(clients("ann"), guarded)


async def test_who_goes_back_has_spent_what_he_has_spent(clients: rights.Clients) -> None:
    await gate.who_goes_back_has_spent_what_he_has_spent(clients("ann"))


async def test_a_thread_is_streamed_by_the_newest_protocol(guarded: str) -> None:
    await gate.a_thread_is_streamed_by_the_newest_protocol(guarded)


def test_every_route_is_known() -> None:
    assert routes.listed(sys.executable, "dev") == routes.all_routes(routes.DEV)


async def test_no_route_starts_what_is_not_offered(guarded: str) -> None:
    await gate.no_route_starts_what_is_not_offered(
        guarded, [route for route in routes.of("start", routes.DEV) if route != SOCKET]
    )


async def test_nobody_is_answered_without_a_key(guarded: str) -> None:
    await routes.nobody_is_answered_without_a_key(guarded, routes.DEV)


async def test_what_is_closed_is_closed_with_a_key(guarded: str) -> None:
    await routes.what_is_closed_is_closed_with_a_key(guarded, routes.DEV)


async def test_nobody_reads_or_changes_the_thread_of_another(clients: rights.Clients, guarded: str) -> None:
    await routes.nobody_reads_or_changes_the_thread_of_another(clients, guarded, routes.DEV)


async def test_lessons_are_their_users(clients: rights.Clients) -> None:
    await rights.lessons_are_their_users(clients)


async def test_a_token_is_its_users(guarded: str) -> None:
    await rights.a_token_is_its_users(guarded)


async def test_nobody_spends_more_than_his_day(clients: rights.Clients) -> None:
    await rights.nobody_spends_more_than_his_day(clients)


async def test_a_socket_starts_nothing_that_is_not_offered_or_on_threads_of_others(
    clients: rights.Clients, guarded: str
) -> None:
    ann = clients("ann")
    thread = await gate.answered(ann)
    address = f"{guarded.replace('http', 'ws')}/threads/{thread}/stream/events"

    async def command(user: str, strategy: str) -> str:
        """Return what is said to a command, or why nothing is."""
        run = {"assistant_id": strategy, "input": rights.asking()}
        headers = {"authorization": f"Bearer {rights.KEYS[user]}"}
        async with websockets.connect(address, additional_headers=headers) as socket, asyncio.timeout(30):
            try:
                await socket.send(json.dumps({"id": 1, "method": "run.start", "params": run}))
                return str(await socket.recv())
            except websockets.ConnectionClosed as closed:
                return str(closed)

    assert "not offered" in await command("ann", gate.CLOSED)
    assert "success" not in await command("bob", "chain_of_thought")
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(address)
    assert len(await ann.runs.list(thread)) == 1
    assert "success" in await command("ann", "chain_of_thought")


async def test_a_thread_is_not_made_with_what_the_run_alone_writes(guarded: str) -> None:
    async with gate.caller(guarded) as http:
        forged: list[dict[str, Any]] = [
            {"values": {"usage": gate.FORGED}},
            {"values": {"run_id": "x", "answer": "Mine."}},
            {"command": {"update": {"usage": gate.FORGED}}},
            {"command": {"goto": {"node": "sample", "input": {"usage": gate.FORGED}}}},
        ]
        for update in forged:
            steps = [{"updates": [{**update, "as_node": "begin"}]}]
            made = await http.post("/threads", json={"metadata": {"graph_id": "chain_of_thought"}, "supersteps": steps})
            assert "run alone" in made.text or "cannot be given" in made.text, (update, made.text)  # the thread is made
            newest = (await http.post("/threads/search", json={"limit": 1, "sort_by": "created_at"})).json()[0]
            assert not (await http.get(f"/threads/{newest['thread_id']}/state")).json()["values"]


async def test_what_was_spent_is_not_taken_back(clients: rights.Clients, guarded: str) -> None:
    thread = await gate.answered(clients("ann"))
    run = (await clients("ann").runs.list(thread))[0]["run_id"]
    begin = {"assistant_id": "chain_of_thought", "input": rights.asking(), "multitask_strategy": "rollback"}
    async with gate.caller(guarded) as http:
        assert (await http.delete(f"/threads/{thread}/runs/{run}")).status_code == 403
        assert (await http.post(f"/threads/{thread}/runs/{run}/cancel?action=rollback")).status_code == 403
        assert (await http.post("/runs/cancel?action=rollback", json={"status": "all"})).status_code == 403
        assert (await http.post(f"/threads/{thread}/runs", json=begin)).status_code == 403
