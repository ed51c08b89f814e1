"""A process of the server, as `make serve` starts it."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.support.needs import ROOT, SERVE_PYTHON

KEYS = {"ann": "a key of ann's", "bob": "a key of bob's"}


class Server:
    """A process of Aegra's."""

    def __init__(self, settings: dict[str, str], log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.clients: list[LangGraphClient] = []
        self.address, self.log = f"http://127.0.0.1:{port}", log
        command = [str(SERVE_PYTHON), "-m", "reflective_agents.serve", "--port", str(port)]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | settings, stdout=output, stderr=output, start_new_session=True
            )

    def client(self, user: str = "ann") -> LangGraphClient:
        """Return a client of a user's; it is closed after the test."""
        self.clients.append(get_client(url=self.address, headers={"authorization": f"Bearer {KEYS[user]}"}))
        return self.clients[-1]

    def wait_until_ready(self) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + 180
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.address}/health").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.2)
        pytest.fail(f"the server does not start:\n{self.log.read_text()[-5000:]}")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, and wait for its end."""
        self.process.send_signal(how)
        self.process.wait(60)
