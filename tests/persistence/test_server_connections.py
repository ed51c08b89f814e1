"""The server's connections to a real Postgres."""

from typing import Any

import psycopg
import pytest

from reflective_agents.serve.connections import Pool


@pytest.mark.postgres
async def test_what_is_written_after_a_run_that_was_cancelled_in_a_pipeline_can_be_read_at_once(
    postgres_url: str,
) -> None:
    options: dict[str, Any] = {"min_size": 1, "max_size": 1, "check": Pool.check_connection}
    async with Pool(postgres_url, kwargs={"autocommit": True}, **options) as pool:
        async with pool.connection() as connection:
            await connection.execute("CREATE TABLE records (name text)")
            left = connection.pipeline()
            await left.__aenter__()  # a run that is cancelled while it waits to leave it never does
        async with pool.connection() as connection:
            row = await (await connection.execute("INSERT INTO records VALUES ('a') RETURNING name")).fetchone()
            assert row == ("a",)
        async with await psycopg.AsyncConnection.connect(postgres_url) as other:
            assert await (await other.execute("SELECT name FROM records")).fetchall() == [("a",)]
