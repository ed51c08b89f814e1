"""Lets one run at a time begin on a thread, and no more of a user's than the operator allows.

`langgraph dev` queues the second run on a thread by itself. Aegra would let both run, and the answer of one would be
lost; so the runs are counted in its database, and who counts first is settled in its Redis.
"""

from typing import Any
from uuid import uuid4

from reflective_agents.serve.days import Days
from reflective_agents.serve.engine import IN_AEGRA
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.limits import sentence

_COUNT = "SELECT count(*) AS runs, count(*) FILTER (WHERE status IN ('pending', 'running')) AS active FROM runs WHERE "
_CREATED = 10
"""Seconds within which a run that was let begin stands in the database."""


async def admit(user: str, asked: JsonMapping, runs_at_once: int | None, days: Days | None) -> Refused | None:
    """Return why a run cannot begin now, if it cannot.

    Args:
        user: Whose run it is.
        asked: The request.
        runs_at_once: The most runs of the user that are under way at a time.
        days: What users may spend in a day.
    """
    if days and (limit := await days.used_up(user)):
        return Refused(f"{sentence(limit)}: a new day begins at midnight UTC", status=429)
    if not IN_AEGRA:
        return None
    thread = asked.get("thread_id")
    if thread and not await _first_on(str(thread)):
        return Refused("another run is under way on this thread: wait for it, or cancel it", status=409)
    if runs_at_once is not None and await _under_way(user) >= runs_at_once:
        return Refused(f"{runs_at_once} runs of yours are under way: wait for one, or cancel one", status=429)
    return None


async def _first_on(thread: str) -> bool:
    """Tell whether nothing runs on a thread and no other request has just arrived for it.

    Who asks at the same time counts the same number of runs, and only one of them gets the number.
    """
    runs, active = await _count("thread_id = %s", thread)
    if active:
        return False
    return bool(await _redis().set(f"reflect:{thread}:{runs}", "", nx=True, ex=_CREATED))


async def _under_way(user: str) -> int:
    """Count the runs of a user that are under way; a run that was just admitted may be counted twice, never missed."""
    redis, key = _redis(), f"reflect:{user}"
    now = (await redis.time())[0]
    await redis.zremrangebyscore(key, 0, now - _CREATED)
    begun = await redis.zcount(key, now - 1, now)
    _, active = await _count("user_id = %s", user)
    await redis.zadd(key, {uuid4().hex: now})
    return active + int(begun)


def _redis() -> Any:
    from aegra_api.core.redis_manager import redis_manager

    return redis_manager.get_client()


async def _count(which: str, value: str) -> tuple[int, int]:
    from aegra_api.core.database import db_manager

    # Not in a session of Aegra's: the request holds one already, and thirty that wait for a second wait forever.
    async with db_manager.lg_pool.connection() as connection:
        row = await (await connection.execute(_COUNT + which, (value,))).fetchone()
    return row["runs"], row["active"]
