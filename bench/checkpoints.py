"""How much a large tree takes when every super-step is stored."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from bench.rows import Row
from bench.scripts import QUESTION, verbose
from reflective_agents.graphs.lats import builder
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.tree import Tree
from reflective_agents.testing.fake import FakeChatModel

WIDTH = 5
THREAD: RunnableConfig = {"configurable": {"thread_id": "large"}}
STORED = (
    "SELECT (SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints) + "
    "(SELECT sum(length(value)) FROM writes)"
)


@dataclass(frozen=True)
class Size:
    """A stored tree: its nodes, the bytes of all text in them, of the whole tree stored once, of everything that was
    stored, and of the database's file."""

    nodes: int
    text: int
    tree: int
    stored: int
    file: int


OWED = 2_500
"""Most bytes of checkpoints that a node may take."""
LINEAR = 1.05
"""Most that a node of a tree ten times as large may take, compared with one of the smaller tree."""


def measure_checkpoints(few: int, many: int) -> list[Row]:
    """Measure LATS with few and with many expansions of 5 candidates, 1,900 bytes a node, checkpointed in SQLite."""
    with TemporaryDirectory() as folder:
        size, large = (sqlite_size(Path(folder) / f"{number}.sqlite", expansions=number) for number in (few, many))
    mega = 1_000_000
    growth = (large.stored / large.nodes) / (size.stored / size.nodes)
    return [
        Row(f"Tree of {size.nodes:,} nodes, stored once", size.tree / mega, "MB", digits=2),
        Row("  the text in it", size.text / mega, "MB", digits=2),
        Row("  all its checkpoints", size.stored / mega, "MB", OWED * size.nodes / mega, digits=2),
        Row("  file of the database", size.file / mega, "MB", digits=2),
        Row(f"Tree of {large.nodes:,} nodes: all its checkpoints", large.stored / mega, "MB", digits=2),
        Row(f"  a node of it / a node of {size.nodes:,}", growth, "", LINEAR, digits=3),
    ]


def sqlite_size(file: Path, expansions: int) -> Size:
    """Grow a tree, storing every super-step in a new SQLite database, and measure it."""
    tree = asyncio.run(_grow_in_sqlite(file, expansions))
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (stored,) = database.execute(STORED).fetchone()
    return Size(len(tree), text_bytes(tree), tree_bytes(tree), stored, file.stat().st_size)


async def _grow_in_sqlite(file: Path, expansions: int) -> Tree:
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        return await grow(saver, expansions)


async def grow(saver: BaseCheckpointSaver[Any], expansions: int) -> Tree:
    """Let LATS grow a tree, and store every super-step."""
    settings: dict[str, Any] = {
        "model": FakeChatModel(reply=verbose),
        "search": "none",
        "n": WIDTH,
        "max_expansions": expansions,
        "max_depth": 100,
        "max_model_calls": 100_000,
        "max_total_tokens": 10**9,
    }
    state = await builder.compile(checkpointer=saver).ainvoke(QUESTION, THREAD, context=LatsContext(**settings))
    tree: Tree = state["tree"]
    return tree


def text_bytes(tree: Tree) -> int:
    """Count the bytes of all texts in a tree: what the agent said and found, and what the judge said of it."""
    texts = (message.text for node in tree.values() for message in node["messages"])
    return sum(len(text.encode()) for text in texts) + sum(len(node["critique"].encode()) for node in tree.values())


def tree_bytes(tree: Tree) -> int:
    """Count the bytes of a tree as it is stored."""
    return len(JsonPlusSerializer().dumps_typed(tree)[1])
