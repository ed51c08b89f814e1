"""The server of today on the database of an earlier release: nothing is lost, and everything goes on."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from reflective_agents.serve.local import postgres, redis
from reflective_agents.serve.run_key import RunKey
from tests.aegra.process import Server
from tests.persistence.earlier_server import ANSWERED, SPENT, THREADS, UNDER_WAY, UNKNOWN, USER, fill, ids_of

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(600), pytest.mark.xdist_group("upgrade")]

HEADERS = {"authorization": "Bearer a key of ada's"}
CALLS = 60
"""Calls that a user may spend in a day."""
ENDED = [name for name, thread in THREADS.items() if thread["answer"]]
UNFINISHED = [name for name in THREADS if name.startswith("stopped-")]
FEW: dict[str, dict[str, Any]] = {"lats": {"n": 2, "max_expansions": 2}, "team": {"max_rounds": 1}}


class Upgraded(NamedTuple):
    """The addresses of the server and of its database."""

    address: str
    database: str


@pytest.fixture(scope="module")
def upgraded() -> Iterator[Upgraded]:
    """Make the database of an earlier release, and start the server on it."""
    # Postgres gives up root's rights, and could not enter pytest's folder without them.
    with TemporaryDirectory() as path, ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        folder = Path(path)
        patch.setenv("REFLECT_SERVE_DIR", str(folder))
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        (folder / "keys").write_text(f"{USER} {hashlib.sha256(HEADERS['authorization'][7:].encode()).hexdigest()}")
        (folder / "policy.json").write_text(json.dumps({"day": {"max_model_calls": CALLS}}))
        settings = {
            "DATABASE_URL": stack.enter_context(postgres()),
            "REDIS_URL": stack.enter_context(redis()),
            "REFLECT_KEYS": str(folder / "keys"),
            "REFLECT_POLICY": str(folder / "policy.json"),
            "REFLECT_CACHE_DIR": str(folder / "cache"),
            "MODEL": "offline",
            "REFLECT_EMBEDDINGS": "lexical",
            "REFLECT_SEARCH": "local",
            "LANGSMITH_TRACING": "false",
            "REAPER_INTERVAL_SECONDS": "2",
        }
        first = Server(settings, folder / "first.log")
        first.wait_until_ready()
        first.end()
        fill(settings["DATABASE_URL"], folder)
        server = Server(settings, folder / "server.log")
        try:
            server.wait_until_ready()
            yield Upgraded(server.address, settings["DATABASE_URL"])
        finally:
            server.end()


@pytest.fixture
async def client(upgraded: Upgraded) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=upgraded.address, headers=HEADERS) as client:
        yield client


@pytest.fixture
async def web(upgraded: Upgraded) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=upgraded.address, headers=HEADERS, timeout=60) as web:
        yield web


async def wait(client: LangGraphClient, name: str, strategy: str, **run: Any) -> Any:
    return await client.runs.wait(ids_of(name).thread, strategy, context=FEW.get(strategy), **run)


def asking(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def end_of_the_run_under_way(client: LangGraphClient) -> None:
    thread, run = ids_of(UNDER_WAY)
    async with asyncio.timeout(60):
        while (await client.runs.get(thread, run))["status"] in ("pending", "running"):  # noqa: ASYNC110 # of another process
            await asyncio.sleep(0.5)


async def test_a_run_that_its_process_has_left_ends_here(client: LangGraphClient) -> None:
    await end_of_the_run_under_way(client)
    thread, _ = ids_of(UNDER_WAY)
    values: Any = (await client.threads.get_state(thread))["values"]
    assert values["outcome"]["status"] in ("solved", "answered", "limit_reached", "exhausted")
    assert [message["type"] for message in values["messages"]] == ["human", "ai"]
    assert values["usage"]["model_calls"] > THREADS[UNDER_WAY]["calls"]


@pytest.mark.parametrize("name", sorted(THREADS.keys() - {UNDER_WAY}))
async def test_a_thread_holds_what_it_held(client: LangGraphClient, name: str) -> None:
    expected = THREADS[name]
    values: Any = (await client.threads.get_state(ids_of(name).thread))["values"]
    states = await client.threads.get_history(ids_of(name).thread, limit=100)
    found = {
        "question": values["messages"][0]["content"],
        "answer": values.get("answer"),
        "checkpoints": len(states),
        "nodes": len(values.get("tree") or {}),
        "calls": values["usage"]["model_calls"],
    }
    assert found == {name: expected[name] for name in found}


async def test_threads_are_listed(client: LangGraphClient) -> None:
    found = await client.threads.search(limit=100)
    assert {ids_of(name).thread for name in THREADS} <= {thread["thread_id"] for thread in found}


@pytest.mark.parametrize("name", ENDED)
async def test_a_conversation_goes_on(client: LangGraphClient, name: str) -> None:
    out = await wait(client, name, THREADS[name]["strategy"], input=asking("And what does it cost?"))
    assert out["outcome"]["status"] in ("solved", "answered", "limit_reached", "exhausted")
    assert [message["type"] for message in out["messages"]] == ["human", "ai", "human", "ai"]
    assert out["messages"][1]["content"] == THREADS[name]["answer"]


@pytest.mark.parametrize("name", sorted({*UNFINISHED} - {UNDER_WAY}))
async def test_a_run_that_was_stopped_goes_on(client: LangGraphClient, name: str) -> None:
    out = await wait(client, name, THREADS[name]["strategy"], input=None)
    assert out["answer"]
    assert out["usage"]["model_calls"] > THREADS[name]["calls"]


async def test_a_run_that_waits_for_a_person_takes_the_critique(client: LangGraphClient) -> None:
    out = await wait(client, "waiting-reflection", "reflection", command={"resume": "accept"})
    assert out["outcome"]["verified_by"] == "person"


async def test_memories_are_found(client: LangGraphClient) -> None:
    out: Any = await client.runs.wait(None, "memory", input=asking("Where does my sister Ada live?"))
    assert any("lives in Turin" in memory["text"] for memory in out["memories"])


async def test_a_response_is_answered_or_unknown(web: httpx.AsyncClient) -> None:
    response = (await web.get(f"/v1/responses/{RunKey(*ids_of(ANSWERED)).id('resp')}")).json()
    assert response["status"] in ("completed", "incomplete")
    assert response["output"][-1]["content"][0]["text"] == THREADS[ANSWERED]["answer"]
    older = RunKey(*ids_of(UNKNOWN)).id("resp")
    assert (await web.get(f"/v1/responses/{older}")).status_code == 404
    body = {"model": "lats", "input": "And what does it cost?", "previous_response_id": older}
    refused = await web.post("/v1/responses", json=body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (404, "previous_response_id")


async def test_what_was_spent_today_counts(client: LangGraphClient, web: httpx.AsyncClient, upgraded: Upgraded) -> None:
    await end_of_the_run_under_way(client)

    def spent() -> int:
        with psycopg.connect(upgraded.database) as database:
            [[calls]] = database.execute("SELECT calls FROM reflect_days WHERE user_id = %s", (USER,)).fetchall()
        return int(calls)

    before, calls = spent(), 0
    assert before >= SPENT
    question = {"model": "chain_of_thought", "messages": [{"role": "user", "content": "Why?"}]}
    while (answer := await web.post("/v1/chat/completions", json=question)).status_code == 200:
        calls += answer.json()["usage"]["model_calls"]
    assert (answer.status_code, spent(), before + calls) == (429, CALLS, CALLS)
