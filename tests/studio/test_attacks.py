"""Attacks on the development server over HTTP."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve import attacks
from tests.studio.conftest import free_port, running, wait_until_ready

pytestmark = [pytest.mark.studio, pytest.mark.hostile, pytest.mark.thorough, pytest.mark.xdist_group("studio")]


@pytest.fixture(scope="module")
def attacked(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server for the attacks alone, and return its address."""
    folder, port = tmp_path_factory.mktemp("attacked"), free_port()
    quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true", "LANGSMITH_TRACING": "false"}
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    command += ["--n-jobs-per-worker", "20", "--port", str(port)]
    log, environment = folder / "server.log", quiet | attacks.settings(folder)
    with log.open("wb") as output, running(command, checkout, environment, output.fileno()) as process:
        wait_until_ready(process, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("name", attacks.NAMES)
async def test_an_attack(attacked: str, name: str) -> None:
    await attacks.keeps_its_rules(attacked, name)
