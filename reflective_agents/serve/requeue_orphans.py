"""Requeues runs whose end could not be written.

Where Postgres is away at the very end of a run, Aegra gives the run up and leaves it `running`, with nobody at
work on it. Nobody would look at it again, and its thread would be taken for good.
"""

import asyncio

from psycopg import OperationalError

_REQUEUE = """
UPDATE runs SET lease_expires_at = now() - interval '1 second'
WHERE status = 'running' AND claimed_by IS NULL AND lease_expires_at IS NULL
"""


async def keep_requeueing() -> None:
    """Look for such runs from time to time, until cancelled; with an expired lease they are taken over like others."""
    from aegra_api.core.database import db_manager
    from aegra_api.settings import settings

    while True:
        await asyncio.sleep(settings.worker.REAPER_INTERVAL_SECONDS)
        if db_manager.lg_pool is None:
            continue
        try:
            async with db_manager.lg_pool.connection() as connection:
                await connection.execute(_REQUEUE)
        except OperationalError:
            continue
