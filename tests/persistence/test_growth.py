"""What is stored grows linearly with the tree, and stays close to the size of the tree itself."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from bench.checkpoints import STORED, THREAD, grow, sqlite_size, tree_bytes
from reflective_agents.graphs.lats import builder
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

TREE, OWED = 1_900_000, 2_500_000
STORED_IN_POSTGRES = b"""
SELECT (SELECT sum(length(checkpoint::text) + length(metadata::text)) FROM checkpoints)
     + (SELECT sum(length(blob)) FROM checkpoint_blobs)
     + (SELECT sum(length(blob)) FROM checkpoint_writes)
"""


def check(stored_half: int, stored: int, tree: int) -> None:
    """All checkpoints of a tree of 501 nodes, of one of 1,001 nodes, and the larger tree itself, in bytes."""
    assert tree == pytest.approx(TREE, rel=0.03)
    assert stored <= OWED
    assert stored / 1001 <= 1.02 * stored_half / 501


@pytest.mark.thorough
def test_a_tree_of_1000_nodes_in_sqlite(tmp_path: Path) -> None:
    half, whole = (sqlite_size(tmp_path / f"{number}.sqlite", expansions=number) for number in (100, 200))
    assert (half.nodes, whole.nodes) == (501, 1001)
    check(half.stored, whole.stored, whole.tree)
    assert whole.file / whole.nodes <= 1.05 * half.file / half.nodes


async def grow_in_postgres(url: str, expansions: int) -> tuple[int, int]:
    """Bytes of all checkpoints of a tree, and of the tree itself."""
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        await saver.setup()
        tree = await grow(saver, expansions)
        async with await psycopg.AsyncConnection.connect(url) as connection:
            row = await (await connection.execute(STORED_IN_POSTGRES)).fetchone()
        await saver.adelete_thread("large")
    assert row is not None
    return int(row[0]), tree_bytes(tree)


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
@pytest.mark.thorough
async def test_a_tree_of_1000_nodes_in_postgres(postgres_url: str) -> None:
    stored_half, _ = await grow_in_postgres(postgres_url, 100)
    stored, tree = await grow_in_postgres(postgres_url, 200)
    check(stored_half, stored, tree)


async def stored_with(articles: int, folder: Path) -> int:
    """Bytes of all checkpoints of a search with so many articles of 1,000 characters, 20 super-steps long."""

    def reply(request: Request) -> Reply:
        if request.schema:
            return {"reasoning": "So.", "score": 0.5, "solved": False}
        return f"Thought: so\nAction: Search[page {request.index} {request.last.count('Action')}]"

    context = LatsContext(model=FakeChatModel(reply=reply), environment="questions", n=1, max_depth=20, max_lessons=0)
    texts = [[f"Article {number}", ["x" * 1000]] for number in range(articles)]
    task = {"id": "1", "question": "Which?", "data": {"context": texts}}
    file = folder / f"{articles}.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke({"messages": [("user", "Which?")], "task": task}, THREAD, context=context)
    with closing(sqlite3.connect(file)) as database:
        (stored,) = database.execute(STORED).fetchone()
    return int(stored)


async def test_the_task_is_not_stored_anew_at_each_step(tmp_path: Path) -> None:
    few, many = [await stored_with(articles, tmp_path) for articles in (1, 41)]
    assert many - few < 5 * 40 * 1000  # as it is given, and where the search begins; with 20 steps it might be 20 times
