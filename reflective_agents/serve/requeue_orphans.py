"""Requeues runs that nobody works on, and that Aegra would leave `running` for good, or for hours.

If Postgres is away at the very end of a run, Aegra gives the run up. No worker would take it up again, and its thread
would stay busy. If the clock is set back, the leases of workers that die then end only when the clock is there again.
"""

import asyncio

from psycopg import OperationalError

_REQUEUE = """
UPDATE runs SET lease_expires_at = now() - interval '1 second'
WHERE status = 'running' AND claimed_by IS NULL AND lease_expires_at IS NULL
"""
_SHORTEN = """
UPDATE runs SET lease_expires_at = now() + make_interval(secs => %(seconds)s)
WHERE status = 'running' AND lease_expires_at > now() + make_interval(secs => 2 * %(seconds)s)
"""
"""A worker that lives makes its lease longer again before that."""


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
                await connection.execute(_SHORTEN, {"seconds": settings.worker.LEASE_DURATION_SECONDS})
        except OperationalError:
            continue
