"""Attacks on Aegra over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.aegra.conftest import Start
from tests.aegra.process import Server
from tests.serve import attacks

pytestmark = [pytest.mark.aegra, pytest.mark.hostile, pytest.mark.thorough, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def attacked(servers: list[Server], settings: dict[str, str], start: Start) -> Iterator[str]:
    """Start a process for the attacks alone, with keys, rules and a queue of its own, and return its address."""
    with TemporaryDirectory() as folder:
        server = start(**attacks.settings(Path(folder)), REDIS_URL=settings["REDIS_URL"].replace("/0", "/2"))
        server.wait_until_ready()
        yield server.address
        server.end()


@pytest.mark.parametrize("name", attacks.NAMES)
async def test_an_attack(attacked: str, name: str) -> None:
    await attacks.keeps_its_rules(attacked, name)
