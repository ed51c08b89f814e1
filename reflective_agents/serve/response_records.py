"""What is kept of a stored response besides its run: the request, and when it came.

Aegra keeps the records in its database, where they go with their threads; `langgraph dev` in memory.
"""

from functools import cache
from typing import Any, NamedTuple, Protocol

from reflective_agents.serve.engine import IN_AEGRA
from reflective_agents.serve.run_key import RunKey
from reflective_agents.serve.tables import Table
from reflective_agents.state.json_types import JsonObject

_TABLE = """
CREATE TABLE IF NOT EXISTS reflect_responses (
    run_id text PRIMARY KEY, thread_id text NOT NULL REFERENCES thread ON DELETE CASCADE, record jsonb NOT NULL);
CREATE INDEX IF NOT EXISTS reflect_responses_thread ON reflect_responses (thread_id)
"""
_ADD = """
INSERT INTO reflect_responses VALUES (%(run_id)s, %(thread_id)s, %(record)s) ON CONFLICT DO NOTHING RETURNING run_id
"""
_GET = "SELECT record FROM reflect_responses WHERE run_id = %(run_id)s AND thread_id = %(thread_id)s"
# The table as it was before the statement is counted.
_DELETE = """
WITH deleted AS (DELETE FROM reflect_responses WHERE run_id = %(run_id)s AND thread_id = %(thread_id)s RETURNING 1)
SELECT count(*) - (SELECT count(*) FROM deleted) AS others FROM reflect_responses WHERE thread_id = %(thread_id)s
"""


class ResponseRecord(NamedTuple):
    """What is kept of a response.

    Attributes:
        body: The request.
        created_at: When it came, in seconds since 1970.
        reported: What its turn had spent before, as earlier responses have reported it.
    """

    body: JsonObject
    created_at: int
    reported: JsonObject


class ResponseRecords(Protocol):
    """The records of all stored responses. Whose they are is not known here: their runs tell."""

    async def add(self, key: RunKey, record: ResponseRecord) -> None:
        """Keep a record."""
        ...

    async def get(self, key: RunKey) -> ResponseRecord | None:
        """Return a record; None if there is none."""
        ...

    async def delete(self, key: RunKey) -> int:
        """Delete a record, and return how many there are of other responses on the same thread."""
        ...


class MemoryRecords:
    """The records of one process."""

    def __init__(self) -> None:
        self._records: dict[RunKey, ResponseRecord] = {}

    async def add(self, key: RunKey, record: ResponseRecord) -> None:
        """Keep a record."""
        self._records[key] = record

    async def get(self, key: RunKey) -> ResponseRecord | None:
        """Return a record."""
        return self._records.get(key)

    async def delete(self, key: RunKey) -> int:
        """Delete a record, and count the others of its thread."""
        self._records.pop(key, None)
        return sum(other.thread_id == key.thread_id for other in self._records)


class PostgresRecords:
    """The records of all processes of Aegra."""

    def __init__(self) -> None:
        self._table = Table(_TABLE)

    async def add(self, key: RunKey, record: ResponseRecord) -> None:
        """Insert a row."""
        from psycopg.types.json import Jsonb

        await self._rows(_ADD, key, record=Jsonb(record._asdict()))

    async def get(self, key: RunKey) -> ResponseRecord | None:
        """Return a row."""
        rows = await self._rows(_GET, key)
        return ResponseRecord(**rows[0]["record"]) if rows else None

    async def delete(self, key: RunKey) -> int:
        """Delete a row, and count the others of its thread."""
        return int((await self._rows(_DELETE, key))[0]["others"])

    async def _rows(self, statement: str, key: RunKey, **values: Any) -> list[dict[str, Any]]:
        return await self._table.rows(statement, {**key._asdict(), **values})


@cache
def response_records() -> ResponseRecords:
    """Return the records of this server."""
    return PostgresRecords() if IN_AEGRA else MemoryRecords()
