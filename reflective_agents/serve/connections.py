"""Aegra's connections to Postgres, without the half of their work that only rare databases need.

Before each use of a connection Aegra asks the database whether it is still there, in up to three round trips, twenty
times a run. Here a connection that was closed is seen to be without asking, and one of which nothing is seen is asked
once in some seconds. Aegra also prepares each statement anew, for poolers that know no prepared statements:
REFLECT_PREPARED_STATEMENTS=false leaves it at that, and gives these no names.
"""

import os
import select
import time
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, OperationalError
from psycopg.pq import PipelineStatus
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

TRUSTED = 5.0
"""Seconds for which a connection is believed to live after it was asked, unless it is seen to be closed."""
_STATEMENTS = 100
"""Prepared statements that a connection keeps: SQLAlchemy's default."""
_FROM_USE = 5
"""Uses of a statement after which it is prepared: psycopg's default."""
C = TypeVar("C")


def configure() -> None:
    """Let the connections that Aegra opens from now on in this process be such ones."""
    from aegra_api.core import database

    registry.register("postgresql.asyncpg", __name__, Dialect.__name__)
    # Aegra gives the check to the pool that it makes, and there is no setting for it.
    database.AsyncConnectionPool = Pool


def keeps_prepared() -> bool:
    """Tell whether statements are prepared once for a connection."""
    return os.environ.get("REFLECT_PREPARED_STATEMENTS", "").strip().lower() not in ("false", "0", "no", "off")


class _Checks(Generic[C]):
    """When it was last checked whether connections live."""

    def __init__(self) -> None:
        self._moments: WeakKeyDictionary[C, float] = WeakKeyDictionary()

    def is_due(self, connection: C) -> bool:
        """Tell whether it is time to ask a connection, and record that it is asked."""
        now = time.monotonic()
        if now - self._moments.get(connection, -TRUSTED) < TRUSTED:
            return False
        self._moments[connection] = now
        return True


class Dialect(PGDialect_asyncpg):
    """SQLAlchemy's connections, for Aegra's own tables."""

    supports_statement_cache = True
    _checks: _Checks[Any] = _Checks()

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Open a connection."""
        if keeps_prepared():
            options["prepared_statement_cache_size"] = _STATEMENTS
        else:
            # asyncpg numbers statements anew for each connection, and behind a pooler several of them share one.
            options |= {"statement_cache_size": 0, "prepared_statement_name_func": str}
        return super().connect(*arguments, **options)

    def do_ping(self, dbapi_connection: Any) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # it says True
        """Tell whether a connection lives."""
        connection = dbapi_connection.driver_connection
        if connection.is_closed():
            return False
        # A loop that was held has not read yet that the connection ends.
        file = connection._transport.get_extra_info("socket").fileno()
        if _has_news(file) or self._checks.is_due(connection):
            return bool(super().do_ping(dbapi_connection))  # type: ignore[no-untyped-call]
        return True


class Pool(AsyncConnectionPool[AsyncConnection[Any]]):
    """psycopg's connections, for checkpoints and memories."""

    _checks: _Checks[AsyncConnection[Any]] = _Checks()

    def __init__(self, conninfo: str, *, kwargs: dict[str, Any], **options: Any) -> None:
        if keeps_prepared():
            kwargs = kwargs | {"prepare_threshold": _FROM_USE}
        super().__init__(conninfo, kwargs=kwargs, **options)

    @staticmethod
    async def check_connection(conn: AsyncConnection[Any]) -> None:
        """Raise if a connection does not live, or if a run that was cancelled has left it in a pipeline: what is
        written there is not committed before its next statement. It is closed then, and the pool opens another.

        Raises:
            psycopg.OperationalError: if it does not live, or does no more.
        """
        if conn.info.pipeline_status != PipelineStatus.OFF:
            await conn.close()
            raise OperationalError("the connection was left in a pipeline")
        # Only the end of a connection is heard unasked, or what leads to it.
        if _has_news(conn.fileno()) or Pool._checks.is_due(conn):
            await AsyncConnectionPool.check_connection(conn)


def _has_news(file: int) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(0))
