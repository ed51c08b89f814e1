"""`reflect threads`: which conversations there are, and how they stand."""

import asyncio
from datetime import datetime
from typing import Any

from cli.output import one_line, print_table
from cli.strategies import STRATEGIES, load
from cli.threads import config_of, open_saver, recent, status


def list_threads(limit: int) -> int:
    """Write the threads, the one asked last first."""
    rows = asyncio.run(_rows(limit))
    print_table(("thread", "strategy", "last step", "status", "question"), rows)
    return 0


async def _rows(limit: int) -> list[tuple[Any, ...]]:
    async with open_saver() as saver:
        rows = []
        for name, strategy in (await recent(saver))[:limit]:
            if strategy not in STRATEGIES:
                continue
            state = await load(strategy, saver).aget_state(config_of(name))
            when = datetime.fromisoformat(state.created_at or "").astimezone()
            asked = [message.text for message in state.values.get("messages", []) if message.type == "human"]
            question = one_line(asked[-1], 60) if asked else ""
            rows.append((name, strategy, f"{when:%Y-%m-%d %H:%M}", status(state), question))
        return rows
