"""`reflect threads`: which conversations there are, and how they stand."""

import asyncio
from datetime import datetime

from reflective_agents.cli.output import one_line, print_table
from reflective_agents.cli.strategies import load
from reflective_agents.cli.threads import open_saver, read_thread, recent, status
from reflective_agents.state.settings import strategy_names


def list_threads(limit: int) -> int:
    """Write the threads, the one asked last first."""
    rows = asyncio.run(_rows(limit))
    print_table(("thread", "strategy", "last step", "status", "question"), rows)
    return 0


async def _rows(limit: int) -> list[tuple[str, ...]]:
    async with open_saver() as saver:
        rows: list[tuple[str, ...]] = []
        for name, strategy in (await recent(saver))[:limit]:
            if strategy not in strategy_names():
                continue
            state = await read_thread(load(strategy, saver), saver, name)
            when = datetime.fromisoformat(state.created_at or "").astimezone()
            asked = [message.text for message in state.values.get("messages", []) if message.type == "human"]
            question = one_line(asked[-1], 60) if asked else ""
            rows.append((name, strategy, f"{when:%Y-%m-%d %H:%M}", status(state), question))
        return rows
