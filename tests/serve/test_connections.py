"""When a connection to Postgres is asked whether it lives, and what it keeps."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg.pq import PipelineStatus

from reflective_agents.serve import connections
from reflective_agents.serve.connections import TRUSTED, Dialect, Pool


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class Driver:
    """A connection of asyncpg's within one of SQLAlchemy's."""

    def __init__(self, ours: socket.socket) -> None:
        self.closed, self.pings = False, 0
        self.driver_connection = self._transport = self
        self.ours = ours

    def get_extra_info(self, name: str) -> Any:
        return {"socket": self.ours}[name]

    def is_closed(self) -> bool:
        return self.closed

    def ping(self) -> None:
        self.pings += 1


class Psycopg:
    """A connection of psycopg's."""

    autocommit = True

    def __init__(self, ours: socket.socket) -> None:
        self.ours, self.queries = ours, 0
        self.info, self.pipeline_status = self, PipelineStatus.OFF

    def fileno(self) -> int:
        return self.ours.fileno()

    async def execute(self, statement: str) -> None:
        self.queries += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(connections, "time", clock)
    return clock


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_connection_is_asked_once_in_a_while(clock: Clock, sockets: tuple[socket.socket, socket.socket]) -> None:
    dialect: Any = Dialect()  # type: ignore[no-untyped-call]
    driver, other = map(Driver, sockets)
    pings = []
    for seconds in (0.0, TRUSTED / 2, TRUSTED / 2, 0.0):
        clock.now += seconds
        assert dialect.do_ping(driver)
        pings.append(driver.pings)
    assert pings == [1, 1, 2, 2]
    assert dialect.do_ping(other)
    assert other.pings == 1


def test_a_connection_is_asked_again_once_its_server_has_left(
    clock: Clock, sockets: tuple[socket.socket, socket.socket]
) -> None:
    dialect: Any = Dialect()  # type: ignore[no-untyped-call]
    ours, theirs = sockets
    driver = Driver(ours)
    for pings in (1, 1):
        assert dialect.do_ping(driver)
        assert driver.pings == pings
    theirs.close()
    dialect.do_ping(driver)
    assert driver.pings == 2


def test_a_closed_connection_is_not_asked(clock: Clock, sockets: tuple[socket.socket, socket.socket]) -> None:
    dialect: Any = Dialect()  # type: ignore[no-untyped-call]
    driver = Driver(sockets[0])
    driver.closed = True
    assert not dialect.do_ping(driver)
    assert driver.pings == 0


async def test_a_connection_of_the_pool_is_asked_again_once_its_server_has_left(
    clock: Clock, sockets: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = sockets
    connection: Any = Psycopg(ours)
    for queries in (1, 1):
        await Pool.check_connection(connection)
        assert connection.queries == queries
    theirs.close()
    await Pool.check_connection(connection)
    assert connection.queries == 2


async def test_a_connection_of_the_pool_is_asked_again_after_a_while(
    clock: Clock, sockets: tuple[socket.socket, socket.socket]
) -> None:
    connection: Any = Psycopg(sockets[0])
    await Pool.check_connection(connection)
    clock.now += TRUSTED
    await Pool.check_connection(connection)
    assert connection.queries == 2


@pytest.mark.parametrize(
    ("variable", "statements", "uses"), [("", 100, 5), ("true", 100, 5), ("false", 0, None), ("0", 0, None)]
)
async def test_statements_are_prepared_once_unless_the_operator_says_no(
    variable: str, statements: int, uses: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECT_PREPARED_STATEMENTS", variable)
    opened: dict[str, Any] = {}

    class Opens:
        paramstyle = "numeric_dollar"

        def connect(self, **options: Any) -> None:
            opened.update(options)

    dialect: Any = Dialect(dbapi=Opens())  # type: ignore[no-untyped-call]
    dialect.connect(prepared_statement_cache_size=0)
    pool = Pool("postgresql://nobody", kwargs={"prepare_threshold": None}, open=False)
    assert isinstance(pool.kwargs, dict)
    assert (opened["prepared_statement_cache_size"], pool.kwargs["prepare_threshold"]) == (statements, uses)
    # Behind a pooler several connections share one of the database's: names of theirs would collide.
    named = opened.get("prepared_statement_name_func", lambda: None)()
    assert (named, opened.get("statement_cache_size")) == ((None, None) if statements else ("", 0))
