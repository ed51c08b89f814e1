"""The events of a run in Redis: whoever comes late and whoever listens is told of each once, in order."""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from reflective_agents.serve.local import redis
from tests.support.needs import ROOT, SERVE_PYTHON

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(300)]

SCRIPT = """
import asyncio, json
from reflective_agents.serve import run_events
run_events.configure()
from aegra_api.core.redis_manager import redis_manager
from aegra_api.services.broker import broker_manager

async def trips():
    info = await redis_manager.get_client().info("stats")
    return info["total_reads_processed"]

async def main():
    await redis_manager.initialize()
    broker = broker_manager.get_or_create_broker("run")
    heard = []

    async def listen():
        async for event in broker.aiter():
            heard.append(event)

    listener = asyncio.create_task(listen())
    while not (await redis_manager.get_client().pubsub_numsub("aegra:run:run"))[0][1]:
        await asyncio.sleep(0.01)
    before = await trips()
    for payload in [("custom", {"seq": number}) for number in range(20)] + [("end", {"status": "success"})]:
        await broker.put(await broker_manager.allocate_event_id("run"), payload)
    spent = await trips() - before
    await asyncio.wait_for(listener, 10)
    kept = await broker_manager._make_broker("run").replay(None)
    print(json.dumps({"heard": heard, "kept": kept, "trips": spent / 21}))

asyncio.run(main())
"""


def test_each_event_is_kept_and_heard_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with TemporaryDirectory() as folder:
        monkeypatch.setenv("REFLECT_SERVE_DIR", folder)
        with redis() as url:
            monkeypatch.setenv("REDIS_URL", url)
            monkeypatch.setenv("REDIS_BROKER_ENABLED", "true")
            command = [str(SERVE_PYTHON), "-c", SCRIPT]
            process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout.splitlines()[-1])
    assert found["heard"] == found["kept"]
    assert [payload[1].get("seq") for _, payload in found["kept"]] == [*range(20), None]
    assert found["trips"] < 2.5
