"""Items of one name in several processes, and in one that is killed."""

import pytest

from reflective_agents.memory.items import Items
from tests.persistence.learners import OWNER, RUNS, SHARED, live
from tests.persistence.rememberers import open_store
from tests.persistence.victim import start


@pytest.mark.thorough
@pytest.mark.matrix
async def test_two_processes_lose_no_item_and_no_count(database: str) -> None:
    async with open_store(database):
        pass  # two processes that set up a database at the same time are the store's affair
    running = [start(live, name, database) for name in ("first", "second")]
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0, 0]
    async with open_store(database) as store:
        items = await Items.open(store, OWNER, "lexical")
        known = {item["advice"] async for item in items.everything()}
        assert known == {"Look.", *(f"{name} {n}" for name in ("first", "second") for n in range(RUNS))}
        [shared] = await items.get([SHARED])
        assert (shared["solved"], shared["failed"]) == (RUNS, RUNS)


@pytest.mark.thorough
@pytest.mark.crossed
@pytest.mark.parametrize("kill_at", [0, 5, RUNS - 1])
async def test_what_a_killed_process_does_again_counts_once(database: str, kill_at: int) -> None:
    victim = start(live, "first", database, kill_at)
    victim.join()
    await live("first", database)
    async with open_store(database) as store:
        items = await Items.open(store, OWNER, "lexical")
        assert await items.count() == RUNS + 1
        [shared] = await items.get([SHARED])
        assert (shared["solved"], shared["failed"]) == (RUNS // 2, RUNS // 2)
