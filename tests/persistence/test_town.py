"""kill -9 in the midst of a town's day, its memories in a store or only in the state: nothing is lost or doubled."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.graphs.town_scripts import play, settings, stored, summary
from tests.persistence.rememberers import open_store
from tests.persistence.runs import THREAD, open_saver
from tests.persistence.victim import processes

ASK: dict[str, Any] = {"messages": [("user", "Tonight Anna gives a party.")]}


@asynccontextmanager
async def opened(folder: str, with_store: bool, reply: Any = play) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    """The graph with a saver in a file, and a store in another one if there is to be one, and its settings."""
    context = settings(model=FakeChatModel(reply=reply))
    async with open_saver(f"{folder}/threads.sqlite") as saver, open_store(f"{folder}/memories.sqlite") as store:
        yield stored(saver, store if with_store else None), context


def live(folder: str, with_store: bool, call: int) -> None:
    """Play the day, until the process kills itself at a call."""
    asyncio.run(_live(folder, with_store, call))


async def _live(folder: str, with_store: bool, call: int) -> None:
    answered: list[Request] = []

    def reply(request: Request) -> Reply:
        answered.append(request)
        if len(answered) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return play(request)

    async with opened(folder, with_store, reply) as (graph, context):
        await graph.ainvoke(ASK, THREAD, context=context, durability="sync")


@pytest.mark.thorough
@pytest.mark.parametrize("with_store", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("call", [17, 20], ids=["talking", "reacting"])
async def test_a_day_that_was_killed_goes_on_as_if_nothing_had_been(
    call: int, with_store: bool, tmp_path: Path
) -> None:
    process = processes.Process(target=live, args=(str(tmp_path), with_store, call))
    await asyncio.to_thread(process.start)
    await asyncio.to_thread(process.join, 60)
    assert process.exitcode == -signal.SIGKILL
    async with opened(str(tmp_path), with_store) as (graph, context):
        result = await graph.ainvoke(None, THREAD, context=context)
    undisturbed = stored(InMemorySaver(), InMemoryStore())
    straight = await undisturbed.ainvoke(ASK, THREAD, context=settings(model=FakeChatModel(reply=play)))
    assert summary(result) == summary(straight)
