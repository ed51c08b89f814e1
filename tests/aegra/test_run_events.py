"""The events of a run in Redis: whoever comes late and whoever listens is told of each once, in order."""

import json
import subprocess
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import ANY

import pytest

from reflective_agents.serve.local import redis
from tests.support.needs import ROOT, SERVE_PYTHON

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(300)]

SCRIPT = r"""
import asyncio, json
from reflective_agents.serve import run_events
run_events.configure()
from aegra_api.core.sse import format_sse_message
from aegra_api.core.redis_manager import redis_manager
from aegra_api.services.broker import broker_manager

async def trips():
    info = await redis_manager.get_client().info("stats")
    return info["total_reads_processed"]

async def main():
    await redis_manager.initialize()
    broker = broker_manager.get_or_create_broker("run")
    payloads = [("custom", {"seq": number}) for number in range(30)] + [("end", {"status": "success"})]

    async def put(payloads):
        for payload in payloads:
            await broker.put(await broker_manager.allocate_event_id("run"), payload)

    # The listener comes after these: Aegra has read what was kept a moment before.
    await put(payloads[:10])
    heard = []

    async def listen():
        async for event in broker.aiter():
            heard.append(event)

    listener = asyncio.create_task(listen())
    while not (await redis_manager.get_client().pubsub_numsub("aegra:run:run"))[0][1]:
        await asyncio.sleep(0.01)
    before = await trips()
    await put(payloads[10:])
    spent = await trips() - before
    await asyncio.wait_for(listener, 10)
    kept = await broker_manager._make_broker("run").replay(None)
    late = [event async for event in broker_manager._make_broker("run").aiter()]
    line = format_sse_message("custom", {"text": TEXT}).splitlines()[1]
    sent = json.loads(line.removeprefix("data: "))
    print(json.dumps({"heard": heard, "late": late, "kept": kept, "trips": spent / 21, "text": sent["text"]}))

asyncio.run(main())
"""
LOST_CONNECTION = r"""
import asyncio, json, os
from redis import Redis
from reflective_agents.serve import run_events
run_events.configure()
from aegra_api.core.redis_manager import redis_manager
from aegra_api.services.broker import broker_manager

PAYLOADS = [("custom", {"seq": 1}), ("custom", {"seq": 2}), ("end", {"status": "success"})]

async def main():
    await redis_manager.initialize()
    heard = []

    async def listen():
        # As in a process that does not run the run.
        async for event in broker_manager._make_broker("run").aiter():
            heard.append(event)

    listener = asyncio.create_task(listen())
    first = await broker_manager.allocate_event_id("run")
    await broker_manager.get_or_create_broker("run").put(first, ("custom", {"seq": 0}))
    while not heard:
        await asyncio.sleep(0.01)
    payloads, later = PAYLOADS, [await broker_manager.allocate_event_id("run") for _ in PAYLOADS]
    if FORGETS:
        # The next event has the number of the first again.
        payloads, later = PAYLOADS[-1:], [first]
    # Nothing here waits, so the listener's connection is away while another process runs the run.
    other = Redis.from_url(os.environ["REDIS_URL"])
    if FORGETS:
        other.flushall()
    other.client_kill_filter(_type="pubsub")
    for event_id, payload in zip(later, payloads):
        message = json.dumps({"event_id": event_id, "payload": payload})
        other.rpush("aegra:run:cache:run", message)
        other.publish("aegra:run:run", message)
    await asyncio.wait_for(listener, 10)
    print(json.dumps([payload for _, payload in heard]))

asyncio.run(main())
"""
TEXT = r"print('caf\u00e9'), \\u00e9, \ud83d\ude00"


def _run(script: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a script of the server's Python beside a Redis of its own, and return what it prints last."""
    with TemporaryDirectory() as folder:
        monkeypatch.setenv("REFLECT_SERVE_DIR", folder)
        with redis() as url:
            monkeypatch.setenv("REDIS_URL", url)
            monkeypatch.setenv("REDIS_BROKER_ENABLED", "true")
            command = [str(SERVE_PYTHON), "-c", script]
            process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def test_each_event_is_kept_and_heard_once_as_it_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _run(f"TEXT = {TEXT!r}{SCRIPT}", monkeypatch)
    assert found["heard"] == found["late"] == found["kept"]
    assert [payload[1].get("seq") for _, payload in found["kept"]] == [*range(30), None]
    assert found["trips"] < 2.5
    assert found["text"] == TEXT


def test_a_listener_whose_connection_was_lost_hears_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = _run(f"FORGETS = False{LOST_CONNECTION}", monkeypatch)
    assert heard == [["custom", {"seq": 0}], ["custom", {"seq": 1}], ["custom", {"seq": 2}], ["end", ANY]]


def test_a_listener_ends_though_its_redis_has_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(f"FORGETS = True{LOST_CONNECTION}", monkeypatch) == [["custom", {"seq": 0}]]
