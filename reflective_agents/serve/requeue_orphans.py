"""Requeues runs that nobody works on, and that Aegra would leave `running` for good, or for hours.

A run is accepted once it is stored: if Redis is away then, it waits in Postgres until a worker looks there, or until it
is queued. Aegra would answer 500, and run it two minutes later all the same, beside the one of a client that repeats
its request.

If Postgres is away at the very end of a run, Aegra gives the run up. No worker would take it up again, and its thread
would stay busy. If the clock is set back, the leases of workers that die then end only when the clock is there again.
"""

import asyncio
import logging
from typing import Any

from psycopg import OperationalError

_logger = logging.getLogger(__name__)

_REQUEUE = """
UPDATE runs SET lease_expires_at = now() - interval '1 second'
WHERE status = 'running' AND claimed_by IS NULL AND lease_expires_at IS NULL
"""
_SHORTEN = """
UPDATE runs SET lease_expires_at = now() + make_interval(secs => %(seconds)s)
WHERE status = 'running' AND lease_expires_at > now() + make_interval(secs => 2 * %(seconds)s)
"""
"""A worker that lives makes its lease longer again before that."""


def accept_stored_runs() -> None:
    """Let Aegra accept all runs that it stores from now on in this process, though Redis is away."""
    from aegra_api.services.executor import executor
    from aegra_api.services.redis_broker import RedisError

    submit = executor.submit

    async def submit_or_leave(job: Any) -> None:
        try:
            await submit(job)
        except RedisError as error:
            _logger.warning("A run waits in Postgres: it could not be queued (%s)", type(error).__name__)

    executor.submit = submit_or_leave


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
