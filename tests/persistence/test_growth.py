"""What is stored grows linearly with the tree, and stays close to the size of the tree itself."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from bench.checkpoints import STORED, THREAD, grow, sqlite_size, tree_bytes
from reflective_agents.graphs.lats import builder
from reflective_agents.graphs.react import builder as react
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.persistence.runs import QUESTION, script
from tests.persistence.runs import stored as run_stored

TREE, OWED = 1_900_000, 2_500_000
STORED_IN_POSTGRES = b"""
SELECT (SELECT sum(length(checkpoint::text) + length(metadata::text)) FROM checkpoints)
     + (SELECT sum(length(blob)) FROM checkpoint_blobs)
     + (SELECT sum(length(blob)) FROM checkpoint_writes)
"""


@pytest.mark.thorough
def test_a_tree_of_1000_nodes_in_sqlite(tmp_path: Path) -> None:
    half, whole = (sqlite_size(tmp_path / f"{number}.sqlite", expansions=number) for number in (100, 200))
    assert (half.nodes, whole.nodes) == (501, 1001)
    assert whole.tree == pytest.approx(TREE, rel=0.03)
    assert whole.stored <= OWED
    assert whole.stored / whole.nodes <= 1.02 * half.stored / half.nodes
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
async def test_a_tree_of_some_hundred_nodes_in_postgres(postgres_url: str) -> None:
    stored_half, _ = await grow_in_postgres(postgres_url, 40)
    stored, tree = await grow_in_postgres(postgres_url, 80)
    assert stored / tree <= 1.35  # of a larger tree it is less
    assert stored / 401 <= 1.02 * stored_half / 201


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


@pytest.mark.thorough
async def test_the_task_is_not_stored_anew_at_each_step(tmp_path: Path) -> None:
    few, many = [await stored_with(articles, tmp_path) for articles in (1, 41)]
    assert many - few < 5 * 40 * 1000  # as it is given, and where the search begins; with 20 steps it might be 20 times


async def stored_after(steps: int, folder: Path) -> int:
    """Bytes of all checkpoints of an agent that takes so many steps, each of which brings 2,000 characters."""

    def reply(request: Request) -> Reply:
        number = sum(message.type == "tool" for message in request.messages)
        return ToolUse("page", {"number": number}) if number < steps else "The end."

    @tool
    def page(number: int) -> str:
        """Return a page."""
        return f"{number} " + "x" * 2_000

    context = ReactContext(model=FakeChatModel(reply=reply), tools=[page], search="none", max_actions=100)
    file = folder / f"steps {steps}.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        await react.compile(checkpointer=saver).ainvoke({"messages": [("user", "Read.")]}, THREAD, context=context)
    with closing(sqlite3.connect(file)) as database:
        (stored,) = database.execute(STORED).fetchone()
    return int(stored)


@pytest.mark.thorough
async def test_the_steps_of_an_agent_are_not_stored_anew_at_each_step(tmp_path: Path) -> None:
    few, many = [await stored_after(steps, tmp_path) for steps in (5, 25)]
    assert many / 25 < 1.5 * few / 5


ALONE = {"actor": "chain_of_thought", "samples": 1}
ROUNDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "reflection": ({"max_rounds": 4}, {"max_rounds": 16}),
    "trials": ({"max_trials": 4, **ALONE}, {"max_trials": 16, **ALONE}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ROUNDS)
async def test_rounds_are_not_stored_anew_at_each_round(strategy: str, tmp_path: Path) -> None:
    sizes = []
    for number, settings in enumerate(ROUNDS[strategy]):
        file = tmp_path / f"{number}.sqlite"
        async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
            context = {**settings, "model": FakeChatModel(reply=lengthy)}
            await run_stored(strategy, saver).ainvoke(QUESTION, THREAD, context=context)
        with closing(sqlite3.connect(file)) as database:
            sizes.append(database.execute(STORED).fetchone()[0])
    few, many = sizes
    assert many / 16 < 1.3 * few / 4


def lengthy(request: Request) -> Reply:
    """Never satisfied, and wordy."""
    reply = script(request)
    return f"{reply} " + "So it goes. " * 200 if isinstance(reply, str) else reply
