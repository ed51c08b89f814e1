"""Checkpoints in Postgres that somebody has tampered with."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import ormsgpack
import psycopg
import pytest
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_POS_ARGS, EXT_CONSTRUCTOR_SINGLE_ARG
from langgraph_sdk.errors import APIStatusError

from tests.aegra.process import Server

pytestmark = [pytest.mark.aegra, pytest.mark.hostile, pytest.mark.thorough, pytest.mark.timeout(400)]
ASKING: dict[str, Any] = {"input": {"messages": [{"role": "user", "content": "Why?"}]}, "context": {"model": "offline"}}


async def test_a_tampered_checkpoint_calls_nothing(
    servers: list[Server], settings: dict[str, str], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    calls = [
        ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, ormsgpack.packb(("os", "system", f"touch {mark}"))),
        ormsgpack.Ext(EXT_CONSTRUCTOR_POS_ARGS, ormsgpack.packb(("subprocess", "getoutput", [f"touch {mark}"]))),
    ]
    threads = servers[0].client()
    for hostile in map(ormsgpack.packb, calls):
        thread = str(uuid4())
        await threads.runs.wait(thread, "chain_of_thought", if_not_exists="create", **ASKING)
        with psycopg.connect(settings["DATABASE_URL"]) as database:
            for table in ("checkpoint_blobs", "checkpoint_writes"):
                written = database.execute(
                    f"UPDATE {table} SET type = 'msgpack', blob = %s WHERE thread_id = %s",
                    (hostile, thread),
                )
                assert written.rowcount
        with pytest.raises(APIStatusError):
            await threads.threads.get_state(thread)
        await threads.runs.wait(thread, "chain_of_thought", raise_error=False, **ASKING)
        assert not mark.exists()
    # Others are served as before.
    answer = await threads.runs.wait(str(uuid4()), "chain_of_thought", if_not_exists="create", **ASKING)
    assert isinstance(answer, dict)
    assert answer["outcome"]
    await threads.aclose()
