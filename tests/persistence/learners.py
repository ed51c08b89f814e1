"""Processes that learn under one name."""

import asyncio
import os
import signal

from reflective_agents.memory.items import Items
from reflective_agents.state.experience import Event, new_item
from tests.persistence.rememberers import open_store

OWNER = "experience/seas"
SHARED = "a" * 32
RUNS = 8


async def live(name: str, database: str, kill_at: int | None = None) -> None:
    """Draw an item of its own in each run, and count the one that all are shown."""
    async with open_store(database) as store:
        items = await Items.open(store, OWNER, "lexical")
        for number in range(RUNS):
            if number == kill_at:
                asyncio.get_running_loop().call_later(0.001, os.kill, os.getpid(), signal.SIGKILL)
            own = new_item(
                f"{ord(name[0]):016x}{number:016x}", name, "seas", f"{name} {number}", kind="success", created=1.0
            )
            await items.add([new_item(SHARED, "All", "seas", "Look.", kind="success", created=0.0), own])
            shown = {SHARED: Event(what="shown", at=float(number), solved=number % 2 == 0)}
            await items.record(f"{name} {number}", shown)
