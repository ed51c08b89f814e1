"""Requeues runs whose end could not be written.

If Postgres is away at the very end of a run, Aegra gives the run up and leaves it `running`, although no worker runs
it. No worker would take it up again, and its thread would stay busy for good.
"""

import asyncio

from psycopg import OperationalError

_REQUEUE = """
UPDATE runs SET lease_expires_at = now() - interval '1 second'
WHERE status = 'running' AND claimed_by IS NULL AND lease_expires_at IS NULL
"""


async def keep_requeueing() -> None:
    """Let the leases of such runs expire, until cancelled: Aegra then hands them to other workers."""
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
