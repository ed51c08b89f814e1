"""Tables of our own in Aegra's database, made when they are first used."""

from collections.abc import Mapping
from typing import Any

_WAIT_FOR_TURN = "SELECT pg_advisory_xact_lock(81920731)"
"""Two processes that make a table at the same moment would both fail."""


class Table:
    """A table of this server's.

    Args:
        definition: The statements that make it where it is not there yet, separated by semicolons.
    """

    def __init__(self, definition: str) -> None:
        self._definition = definition
        self._ready = False

    async def rows(self, statement: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run a statement that returns rows, and return them."""
        from aegra_api.core.database import db_manager

        async with db_manager.lg_pool.connection() as connection:
            if not self._ready:
                async with connection.transaction():
                    for part in (_WAIT_FOR_TURN, *self._definition.split(";")):
                        await connection.execute(part)
                self._ready = True
            rows: list[dict[str, Any]] = await (await connection.execute(statement, values)).fetchall()
            return rows
