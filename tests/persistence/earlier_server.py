"""The database of a server of an earlier release, made of the threads and memories that version 1 has left.

Aegra has made its own tables; those of this project are not there, or as the earlier release has made them.
"""

import json
import lzma
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.types.json import Jsonb

OLD = Path(__file__).parent.parent / "old_data" / "v1"
THREADS: dict[str, dict[str, Any]] = json.loads((OLD / "expected.json").read_text("utf-8"))["threads"]
USER = "ada"
SPENT = 7
"""Calls of the user's today, as the earlier release has counted them."""
ANSWERED, UNKNOWN, UNDER_WAY = "finished-team", "finished-lats", "stopped-lats"
"""Threads: of a response that was stored with its request, of one that was stored without, of a run that was broken
off with its process."""

_THREAD = "INSERT INTO thread (thread_id, status, metadata_json, user_id) VALUES (%s, %s, %s, %s)"
_RUN = """
INSERT INTO runs (run_id, thread_id, assistant_id, status, input, config, context, output, user_id, execution_params,
    claimed_by, lease_expires_at)
VALUES (%s, %s, (SELECT assistant_id FROM assistant WHERE graph_id = %s AND user_id = 'system'), %s, %s, '{}', '{}', %s,
    %s, %s, %s, now() - interval '1 hour')
"""
_DAYS = """
CREATE TABLE reflect_days (
    user_id text, day date, calls bigint NOT NULL, tokens bigint NOT NULL, nano bigint NOT NULL,
    PRIMARY KEY (user_id, day));
"""
_RESPONSES = """
CREATE TABLE reflect_responses (
    run_id text PRIMARY KEY, thread_id text NOT NULL REFERENCES thread ON DELETE CASCADE, record jsonb NOT NULL);
"""


class Ids(NamedTuple):
    """The ids of a thread and of the run that was last on it."""

    thread: str
    run: str


def ids_of(name: str) -> Ids:
    """Return the ids under which the database holds a thread."""
    return Ids(str(uuid5(NAMESPACE_URL, name)), str(uuid5(NAMESPACE_URL, f"{name}/run")))


def fill(url: str, folder: Path) -> None:
    """Fill a database, in which Aegra has made its tables.

    Args:
        url: Where it is.
        folder: Where files may be unpacked.
    """
    for name in ("threads", "memory"):
        (folder / f"{name}.sqlite").write_bytes(lzma.decompress((OLD / f"{name}.sqlite.xz").read_bytes()))
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP TABLE IF EXISTS reflect_days, reflect_responses")
        database.execute(_DAYS)
        database.execute(
            "INSERT INTO reflect_days VALUES (%s, %s, %s, 100, 0)", (USER, datetime.now(UTC).date(), SPENT)
        )
        database.execute(_RESPONSES)
        for name, thread in THREADS.items():
            _add_thread(database, ids_of(name), thread, is_under_way=name == UNDER_WAY)
        body = {"model": f"{THREADS[ANSWERED]['strategy']}:offline", "input": THREADS[ANSWERED]["question"]}
        record = {"body": body, "created_at": 1_795_000_000, "reported": {}}
        thread_id, run_id = ids_of(ANSWERED)
        database.execute("INSERT INTO reflect_responses VALUES (%s, %s, %s)", (run_id, thread_id, Jsonb(record)))
        _copy_memories(folder / "memory.sqlite", database)
    _copy_checkpoints(folder / "threads.sqlite", url)


def _add_thread(database: psycopg.Connection[Any], ids: Ids, thread: dict[str, Any], *, is_under_way: bool) -> None:
    strategy, has_ended = thread["strategy"], thread["answer"] is not None
    status = "busy" if is_under_way else "idle" if has_ended else "interrupted"
    metadata = {"owner": USER, "graph_id": strategy, "thread_name": thread["question"]}
    database.execute(_THREAD, (ids.thread, status, Jsonb(metadata), USER))
    question = {"messages": [{"role": "user", "content": thread["question"]}]}
    execution = {"input_data": question, "config": {}, "context": {}, "durability": "sync", "event_streaming_v2": False}
    behavior = {"subgraphs": False, "interrupt_after": None, "interrupt_before": None, "multitask_strategy": None}
    parameters = {
        "graph_id": strategy,
        "user": {"identity": USER, "display_name": USER, "permissions": [], "is_authenticated": True},
        "trace": {"user_id": USER, "graph_id": strategy, "thread_id": ids.thread, "correlation_id": ids.run},
        "execution": execution | {"command": None, "checkpoint": None, "stream_mode": None},
        "behavior": behavior,
        "run_metadata": {},
    }
    ended = "success" if has_ended else "interrupted"
    output = Jsonb({"answer": thread["answer"]}) if has_ended else None
    owner = "a process that is no more" if is_under_way else None
    run = (*reversed(ids), strategy, "running" if is_under_way else ended, Jsonb(question), output, USER)
    database.execute(_RUN, (*run, Jsonb(parameters), owner))


def _copy_checkpoints(file: Path, url: str) -> None:
    with SqliteSaver.from_conn_string(str(file)) as old, PostgresSaver.from_conn_string(url) as new:
        for name in THREADS:
            everything: list[CheckpointTuple] = [*old.list({"configurable": {"thread_id": name}})]
            for saved in reversed(everything):
                _copy_checkpoint(saved, ids_of(name), new)


def _copy_checkpoint(saved: CheckpointTuple, ids: Ids, new: PostgresSaver) -> None:
    def renamed(config: RunnableConfig) -> RunnableConfig:
        return {"configurable": {**config["configurable"], "thread_id": ids.thread}}

    first: RunnableConfig = {
        "configurable": {"thread_id": ids.thread, "checkpoint_ns": saved.config["configurable"]["checkpoint_ns"]}
    }
    parent = renamed(saved.parent_config) if saved.parent_config else first
    metadata: Any = {**saved.metadata, "run_id": ids.run, "user_id": USER}
    config = new.put(parent, saved.checkpoint, metadata, saved.checkpoint["channel_versions"])
    writes: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in saved.pending_writes or []:
        writes.setdefault(task, []).append((channel, value))
    for task, written in writes.items():
        new.put_writes(config, written, task)


def _copy_memories(file: Path, database: psycopg.Connection[Any]) -> None:
    old = sqlite3.connect(file)
    for prefix, key, value in old.execute("SELECT prefix, key, value FROM store"):
        database.execute(
            "INSERT INTO store (prefix, key, value) VALUES (%s, %s, %s)", (prefix, key, Jsonb(json.loads(value)))
        )
    old.close()
